"""Export of a chain: its matrix immediately, and a sentence-transformers model in the background.

For a run, the model is its encoder, the modules between encoder and output layer, and the chain. For embedded texts, it is the model
that embedded them, and the chain (`isoviz.posthoc.export`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.exploring import encoders
from isoviz.exploring.jobs import PREPARE
from isoviz.jobs.kinds import ENCODERS, GIB, Job, JobKind
from isoviz.jobs.results import ResultStore
from isoviz.models import prefixes, sources
from isoviz.posthoc import export
from isoviz.posthoc.export import Effect, Origin
from isoviz.posthoc.protocol import Affine
from isoviz.readouts.reading import Comparison
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings, load
from isoviz.whatif.engine import Full, WhatIf

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from isoviz.models.adapter import HeadedModel

ARCHIVE: Final = "archive"
"""Name of the result array that holds a zip archive's bytes."""
_MADE_BY: Final = ("model", "pooling", "layer", "prompt", "truncate", "max_length")
"""Facts of a set of embedded texts that describe their model."""
_CHECKED: Final = 16
"""Rows on which an exported run is checked."""


def matrix_of(engine: WhatIf, steps: Sequence[Step], full: Full | None = None) -> tuple[Affine, Origin]:
    """The matrix of a chain, and its origin with the effects measured on rows that it was not fitted on.

    Raises:
        InputError: a step is not affine, or cannot be fitted (field `chain`).
        NotReadyError: an IsoLayer has to be trained first.
    """
    source, chain = engine.source, chains.write(steps)
    shown = "" if isinstance(source, Embeddings) else " shown"
    effects = effects_of(engine, full.comparisons, shown) if full else ()
    if isinstance(source, Embeddings):
        split, data = "train", f"run {source.facts['run']}, {source.facts['task']}"
        before = " before the method" if source.cloud == "pooled" and source.differs else ""
        made_by = f"input of the run's output layer{before}"
        start, answer = (engine.answer(moved).measures["isoscore"] for moved in ((), steps))
        effects += (Effect("IsoScore", start, answer, rows=f"{len(engine.validation):,} validation rows"),)
        key = source.key
    else:
        facts, data, key = source.vectors.facts, source.vectors.name, source.vectors.key
        searches = engine.annotations.queries is not None
        split = "the documents" if searches else f"of {source.vectors.n:,}, drawn with seed 0"
        made_by = ", ".join(f"{name} {facts[name]}" for name in _MADE_BY if facts.get(name) is not None)
    return engine.affine(steps), Origin(chain, data, key, len(engine.train), split, made_by, effects)


def effects_of(engine: WhatIf, measured: Sequence[Comparison], rows_note: str = "") -> tuple[Effect, ...]:
    """Read-outs in the form stored in an export.

    Args:
        rows_note: a remark on their rows.
    """
    return tuple(
        Effect(
            engine.annotations.title_of(result.readout),
            result.before,
            result.after,
            result.difference.low,
            result.difference.high,
            f"{result.difference.n:,} {result.readout.unit}{rows_note}",
        )
        for result in measured
    )


def spec_of_run(config: RunConfig, checkpoint: Path, cloud: str, embeddings: str) -> dict[str, Any]:
    """The request of a job that exports a run's model.

    Raises:
        InputError: the run cannot be exported as a sentence-transformers model.
    """
    task = tasks.get(config.task, config.own)
    if len(task.inputs) > 1:
        raise InputError("run: it reads two texts at once, and a sentence-transformers model reads one", field="run")
    return {
        "config": config.model_dump(mode="json"),
        "checkpoint": str(checkpoint),
        "cloud": cloud,
        "embeddings": embeddings,
    }


def spec_of_model(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a job that exports the model that embedded texts.

    Args:
        facts: `model`, and any of `pooling` (default: the model's usual one), `layer`, `prompt`, `truncate` and `max_length`, as
            for `isoviz.posthoc.export.as_sentence_transformer`.

    Raises:
        InputError: the model of the vectors is unknown.
    """
    if "model" not in facts:
        raise InputError("model: these vectors come from a file, so their model is unknown", field="model")
    spec = {name: facts[name] for name in _MADE_BY if facts.get(name) is not None}
    if spec.get("pooling") == "sentence":
        spec.pop("layer", None)  # always the last
    return spec


def write_model(spec: Mapping[str, Any], affine: Affine, origin: Origin, folder: Path) -> float:
    """Write a requested model to a folder; returns its largest deviation, see `isoviz.posthoc.export.save`. Imports torch."""
    if "checkpoint" in spec:
        return _write_run(spec, affine, origin, folder)
    from isoviz.models.extract import usual_pooling

    options = dict(spec)
    with encoders.opened(options.pop("model")) as (source, run):
        source = source if run else sources.fetch(source)
        options.setdefault("pooling", usual_pooling(source))
        return export.as_sentence_transformer(affine, origin, source, folder, **options)


def _write_run(spec: Mapping[str, Any], affine: Affine, origin: Origin, folder: Path) -> float:
    from isoviz.models.wiring import Causal
    from isoviz.training.reload import reload

    config = RunConfig.model_validate(spec["config"])
    shown = load(spec["embeddings"], spec["cloud"])
    model, head = reload(config, Path(spec["checkpoint"]))
    with tempfile.TemporaryDirectory(prefix="isoviz-run-") as place:
        base: Any = model.network.base_model
        base.save_pretrained(place)
        head.tokenizer.save_pretrained(place)
        if isinstance(model.wiring, Causal):
            sentence_model = export.bare_transformer(
                place, "mean" if config.pooling == "mean" else "last", config.max_length
            )
        else:
            sentence_model = export.bare_transformer(place, "cls", config.max_length)
            _append_head(sentence_model, model)
        points = shown.validation[:_CHECKED].astype(np.float64)
        if spec["cloud"] == "head" and shown.differs:
            pooled = load(spec["embeddings"], "pooled").validation
            export.append_dense(
                sentence_model, _method_map(model, pooled, shown.validation), pooled[:_CHECKED].astype(np.float64)
            )
        export.append_dense(sentence_model, affine, points)
        words = prefixes.split_prefix(config.prefix)[0]
        if words:
            sentence_model.prompts, sentence_model.default_prompt_name = {"run": f"{words} "}, "run"
        return export.save(sentence_model, folder, origin, affine.of_points(points), shown.texts[:_CHECKED])


def _append_head(sentence_model: SentenceTransformer, model: HeadedModel) -> None:
    """Add the layers between a family's first token and the output layer as a Dense module."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    network: Any = model.network
    layer: torch.nn.Linear
    activation: torch.nn.Module
    kind = getattr(model.wiring, "head", "")
    if kind == "pooler":
        pooler = network.base_model.pooler
        layer, activation = getattr(pooler, "dense", pooler), torch.nn.Tanh()
    elif kind == "relu":
        layer, activation = network.pre_classifier, torch.nn.ReLU()
    elif kind in ("dense", "gelu"):
        layer, activation = network.classifier.dense, torch.nn.Tanh() if kind == "dense" else torch.nn.GELU()
    else:
        raise InputError(
            f"export: the head of a {network.config.model_type} has no equivalent in sentence-transformers",
            field="export",
            advice="Export the matrix instead.",
        )
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    sentence_model.append(Dense(weight.shape[1], weight.shape[0], True, activation, weight, bias))


def _method_map(model: HeadedModel, pooled: NDArray[np.float32], head: NDArray[np.float32]) -> Affine:
    """The run's method in evaluation mode as a matrix, derived from (n, h) vectors before and after it."""
    import torch

    from isoviz.models.hooks import Representations

    def through(points: NDArray[np.float64]) -> NDArray[np.float64]:
        tensor = torch.from_numpy(points).float()
        reps = Representations(tensor, tensor, tensor[:, None], (), torch.ones(len(tensor), 1), model.output.weight)
        with torch.inference_mode():
            return model.hooks.transform(reps, training=False).double().numpy()

    width = pooled.shape[1]
    offset = through(np.zeros((1, width)))[0]
    affine = Affine(through(np.eye(width)) - offset, offset)
    deviation = float(np.abs(affine.of_points(pooled.astype(np.float64)) - head).max())
    if not deviation <= export.TOLERANCE * float(np.linalg.norm(head, axis=1).max()):
        raise InputError(
            "export: the run's method is not affine, so it cannot be a Dense module",
            field="export",
            advice="Choose the vectors before the method, or export the matrix.",
        )
    return affine


def _work(job: Job) -> None:
    request, inputs = job.request, job.inputs()
    job.report(0, 2, "building the model")
    origin = dict(request["origin"])
    effects = tuple(Effect(**effect) for effect in origin.pop("effects"))
    affine = Affine(inputs["W"], inputs["b"])
    deviations: list[float] = []
    content = export.zipped_model(
        lambda folder: deviations.append(
            write_model(request["order"], affine, Origin(**origin, effects=effects), folder)
        )
    )
    job.report(2, 2, "checking its vectors")
    job.publish({"deviation": deviations[0]}, {ARCHIVE: np.frombuffer(content, dtype=np.uint8)})


EXPORTED: Final = ResultStore("exports", lambda: 4 * GIB, most=10)
"""Models to download."""

EXPORT: Final = JobKind(
    name="export", room=__name__, work=_work, results=EXPORTED, pool=ENCODERS, prepare=PREPARE, memory=2 * GIB
)
"""`{"order": from `spec_of_run` or `spec_of_model`, "origin": an `Origin`}` with `W` and `b`; the result has `ARCHIVE`."""


def request(spec: Mapping[str, Any], affine: Affine, origin: Origin) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Request and inputs of a job of kind `EXPORT`."""
    return {"order": dict(spec), "origin": asdict(origin)}, {"W": affine.matrix, "b": affine.offset}
