"""A finished run's model as a transformers directory, which loads without isoviz, or as an archive of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isoviz import input_validation, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.jobs.kinds import ENCODERS, GIB, Job, JobKind
from isoviz.jobs.results import ResultStore
from isoviz.models.prefixes import split_prefix
from isoviz.posthoc.export import zipped_model
from isoviz.runs import planning
from isoviz.training import weights

if TYPE_CHECKING:
    from isoviz.runs.rows import RunRow


def save(run: RunRow, folder: Path, target: str) -> Path:
    """Write model, tokenizer and a model card, of embeddings as a sentence-transformers folder. IsoBN, batch normalisation and the
    IsoLayer are folded into the output layer.

    Args:
        run: a finished run.
        folder: folder of the run's files.
        target: a new or empty directory.

    Raises:
        InputError: the run has not finished or has no weights, its method is not affine, or the target is not empty.
    """
    order = request(run, folder)
    out = input_validation.new_folder(target, "out", empty=True)
    _write(order, out, out.name)
    return out


def request(run: RunRow, folder: Path) -> dict[str, Any]:
    """Request of a job of kind `SAVE`; arguments and errors as for `save`."""
    checkpoint = weights.newest(folder)
    if run.status != "finished" or run.result is None or checkpoint is None or weights.saved(folder) is None:
        reason = f"it is {run.status}" if run.status != "finished" else "its weights no longer exist"
        raise InputError.at("run", f"'{run.id}' has no model to save: {reason}")
    if run.config.pooling == "mean" and tasks.get(run.config.task, run.config.own).kind != "embedding":
        raise InputError.at(
            "run",
            f"transformers reads a decoder's last token, and '{run.id}' was trained with pooling '{run.config.pooling}'",
        )
    scores = {name: value for name, value in run.result.metrics.items() if value is not None}
    config = run.config.model_dump(mode="json")
    return {"run": run.id, "config": config, "checkpoint": str(checkpoint), "scores": scores}


def _write(order: Mapping[str, Any], out: Path, name: str) -> None:
    """Write the model of `request`. `name`: name of the directory, for the model card."""
    from isoviz.models import folding
    from isoviz.training.reload import reload

    config, checkpoint = RunConfig.model_validate(order["config"]), Path(order["checkpoint"])
    model, head = reload(config, checkpoint)
    if config.pooling == "last" and head.tokenizer("a text")["input_ids"][-1] == head.tokenizer.pad_token_id:
        raise InputError.at(
            "run",
            "its tokenizer ends a text with the token that it pads with, so transformers would read the one before it",
        )
    if model.kind == "embedding":
        folding.save_embedder(model, head.tokenizer, out, split_prefix(config.prefix), config.max_length)
    else:
        start = weights.find_provenance(checkpoint.parents[1])
        folding.save(model, out, tasks.get(config.task, config.own).label_names, start.generation if start else {})
        head.tokenizer.save_pretrained(out)
    (out / "README.md").write_text(
        _card(order["run"], config, order["scores"], name, hasattr(model.network, "output_layer")), encoding="utf-8"
    )


def _work(job: Job) -> None:
    job.report(0, 1, "writing the model")
    content = zipped_model(lambda folder: _write(job.request, folder, f"isoviz-{job.request['run']}"))
    job.publish({}, {"archive": np.frombuffer(content, dtype=np.uint8)})


SAVE: Final = JobKind(
    name="save-model",
    room=__name__,
    work=_work,
    results=ResultStore("models", lambda: 4 * GIB, most=10),
    pool=ENCODERS,
    memory=2 * GIB,
)
"""Jobs for `request(run, folder)`; the result has the array `archive`, a zip archive."""


def _card(run_id: str, config: RunConfig, scores: Mapping[str, float], directory: str, pools: bool = False) -> str:
    """`pools`: the classifier is that of `isoviz.models.pooled`, which transformers does not have."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    task = tasks.get(config.task, config.own)
    embeds = task.kind == "embedding"
    inputs = ("every first text", "every second text") if embeds or len(task.inputs) > 1 else ("every input",)
    texts = zip(split_prefix(config.prefix), inputs, strict=False)
    room = Environment(
        loader=PackageLoader("isoviz.runs", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return room.get_template("model_card.md.jinja").render(
        run=run_id,
        config=config,
        embeds=embeds,
        prefixed=[f"`{prefix}` before {text}" for prefix, text in texts if prefix],
        directory=directory,
        pools=pools,
        auto="" if embeds else "AutoModel" if pools else task.rules.auto_class,
        scores=scores,
        command=planning.command([config]),
    )
