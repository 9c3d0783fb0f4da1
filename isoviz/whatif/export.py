"""Take a chain home: its matrix at once, and a sentence-transformers model made in the background.

A run's model is its encoder, what lies between that and the output layer, and then the chain; a model that embedded texts is itself,
and then the chain (`isoviz.posthoc.export`).
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
from isoviz.exploring.jobs import PREPARE
from isoviz.jobs.kinds import ENCODERS, GIB, Job, JobKind
from isoviz.jobs.results import ResultStore
from isoviz.models import prefixes, sources
from isoviz.posthoc import export
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.export import Effect, Origin
from isoviz.readouts.reading import Comparison
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings, load
from isoviz.whatif.engine import Answer, Full, WhatIf
from isoviz.whatif.vectors import VectorsWhatIf

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from isoviz.models.adapter import HeadedModel
    from isoviz.vectors import VectorSet

ARCHIVE: Final = "archive"
"""The array of a result that holds the bytes of a zip archive."""
_MADE_BY: Final = ("model", "pooling", "layer", "prompt", "truncate", "max_length")
"""Facts of a set of embedded texts."""
_CHECKED: Final = 16
"""Rows that an exported run is compared on."""


def of_run(engine: WhatIf, steps: Sequence[Step], effects: Sequence[Effect] = ()) -> tuple[Affine, Origin]:
    """The matrix of a chain on a run's vectors, and where it comes from.

    Raises:
        InputError: a step is not affine, or cannot be fitted (field `chain`).
        NotReadyError: an IsoLayer has to be trained first.
    """
    embeddings = engine.embeddings
    origin = Origin(
        chain=chains.write(steps),
        data=f"run {embeddings.facts['run']}, {embeddings.facts['task']}",
        key=embeddings.key,
        rows=len(embeddings.train),
        split="train",
        vectors="what the output layer of the run reads"
        + (" before the method" if embeddings.cloud == "pooled" and embeddings.differs else ""),
        effects=tuple(effects),
    )
    return engine.affine(steps), origin


def effects_of(embeddings: Embeddings, start: Answer, answer: Answer, first: Full, full: Full) -> list[Effect]:
    """What the page measured: the task's metric with both heads, and IsoScore."""
    metric, rows = embeddings.facts["primary"], f"{answer.n:,} validation rows"
    return [
        Effect.of(f"{metric}, own head", start.frozen, answer.frozen, full.frozen_difference, rows),
        Effect.of(f"{metric}, refitted head", first.refitted, full.refitted, full.refitted_difference, rows),
        Effect.of("IsoScore", start.measures["isoscore"], answer.measures["isoscore"], rows=rows),
    ]


def of_set(engine: VectorsWhatIf, steps: Sequence[Step], measured: Sequence[Comparison] = ()) -> tuple[Affine, Origin]:
    """The matrix of a chain on a set of vectors, and where it comes from; raises as `of_run`.

    Args:
        measured: read-outs of rows that the chain was not fitted on.
    """
    vector_set = engine.found
    made = ", ".join(f"{name} {vector_set.facts[name]}" for name in _MADE_BY if vector_set.facts.get(name) is not None)
    fitted = len(engine.division.fit)
    which = "the documents" if engine.known.queries is not None else f"of {vector_set.n:,}, drawn with seed 0"
    origin = Origin(
        chains.write(steps), vector_set.name, vector_set.key, fitted, which, made, effects_of_readouts(measured)
    )
    return engine.affine(steps), origin


def effects_of_readouts(measured: Sequence[Comparison], how: str = "") -> tuple[Effect, ...]:
    """Read-outs as an export carries them.

    Args:
        how: what a reader must know of their rows.
    """
    return tuple(
        Effect.of(
            one.readout.title, one.before, one.after, one.difference, f"{one.difference.n:,} {one.readout.unit}{how}"
        )
        for one in measured
    )


def measured_on(vectors: VectorSet, steps: Sequence[Step]) -> tuple[Effect, ...]:
    """What a chain does to the read-outs of a set, fitted on one part of its rows and measured on another.

    Raises:
        InputError: too few rows to be divided.
    """
    engine = VectorsWhatIf(vectors)
    stages = engine.stages(steps)
    while True:
        try:
            next(stages)
        except StopIteration as end:
            fitted = len(engine.division.fit)
            return effects_of_readouts(end.value.comparisons, f", with the chain fitted on {fitted:,} other rows")


def order_for_run(config: RunConfig, checkpoint: Path, cloud: str, embeddings: str) -> dict[str, Any]:
    """The request of a job that exports a run's model.

    Raises:
        InputError: why such a run is no sentence-transformers model.
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


def order_for_model(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a job that exports the model that embedded texts.

    Args:
        facts: of a set: `model`, `pooling`, and any of `layer`, `prompt`, `truncate` and `max_length`, as for
            `isoviz.posthoc.export.as_sentence_transformer`.

    Raises:
        InputError: no model is known to have made the vectors.
    """
    if "model" not in facts or "pooling" not in facts:
        raise InputError("model: these vectors come from a file, so their model is not known", field="model")
    order = {name: facts[name] for name in _MADE_BY if facts.get(name) is not None}
    if order["pooling"] == "sentence":
        order.pop("layer", None)  # always the last
    return order


def write_model(order: Mapping[str, Any], affine: Affine, origin: Origin, folder: Path) -> float:
    """Write the model of an order to a folder; its largest deviation, see `isoviz.posthoc.export.save`. Loads torch."""
    if "checkpoint" in order:
        return _write_run(order, affine, origin, folder)
    options = dict(order)
    source = sources.fetch(sources.resolve(options.pop("model")))
    return export.as_sentence_transformer(affine, origin, source, folder, **options)


def _write_run(order: Mapping[str, Any], affine: Affine, origin: Origin, folder: Path) -> float:
    from isoviz.training.reload import reload

    config = RunConfig.model_validate(order["config"])
    shown = load(order["embeddings"], order["cloud"])
    model, head = reload(config, Path(order["checkpoint"]))
    with tempfile.TemporaryDirectory(prefix="isoviz-run-") as place:
        base: Any = model.network.base_model
        base.save_pretrained(place)
        head.tokenizer.save_pretrained(place)
        sentence_model = export.bare_transformer(place, "cls", config.max_length)
        _append_head(sentence_model, model)
        points = shown.validation[:_CHECKED].astype(np.float64)
        if order["cloud"] == "head" and shown.differs:
            pooled = load(order["embeddings"], "pooled").validation
            export.append_dense(
                sentence_model, _method_map(model, pooled, shown.validation), pooled[:_CHECKED].astype(np.float64)
            )
        export.append_dense(sentence_model, affine, points)
        words = prefixes.split_prefix(config.prefix)[0]
        if words:
            sentence_model.prompts, sentence_model.default_prompt_name = {"run": f"{words} "}, "run"
        return export.save(sentence_model, folder, origin, affine.of_points(points), shown.texts[:_CHECKED])


def _append_head(sentence_model: SentenceTransformer, model: HeadedModel) -> None:
    """What a family puts between its first token and the output layer, as a Dense module."""
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
            f"export: the head of a {network.config.model_type} is not a sentence-transformers module",
            field="export",
            advice="Export the matrix instead.",
        )
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    sentence_model.append(Dense(weight.shape[1], weight.shape[0], True, activation, weight, bias))


def _method_map(model: HeadedModel, pooled: NDArray[np.float32], head: NDArray[np.float32]) -> Affine:
    """What the run's method does to vectors in evaluation, as a matrix, read off from (n, h) vectors before and after it."""
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
    off = float(np.abs(affine.of_points(pooled.astype(np.float64)) - head).max())
    if not off <= export.TOLERANCE * float(np.linalg.norm(head, axis=1).max()):
        raise InputError(
            "export: the run's method is not affine, so it is no Dense module",
            field="export",
            advice="Choose the vectors before the method, or export the matrix.",
        )
    return affine


def _work(job: Job) -> None:
    request, inputs = job.request, job.inputs()
    job.report(0, 2, "building the model")
    origin = dict(request["origin"])
    effects = tuple(Effect(**one) for one in origin.pop("effects"))
    made: list[float] = []
    content = export.zipped_model(
        lambda folder: made.append(
            write_model(request["order"], Affine(inputs["W"], inputs["b"]), Origin(**origin, effects=effects), folder)
        )
    )
    job.report(2, 2, "checking its vectors")
    job.publish({"deviation": made[0]}, {ARCHIVE: np.frombuffer(content, dtype=np.uint8)})


EXPORTED: Final = ResultStore("exports", lambda: 4 * GIB, most=10)
"""Models on their way to a download."""

EXPORT: Final = JobKind(
    name="export", room=__name__, work=_work, results=EXPORTED, lane=ENCODERS, prepare=PREPARE, memory=2 * GIB
)
"""`{"order": of `order_for_run` or `order_for_model`, "origin": an `Origin`}` with `W` and `b`; leaves `ARCHIVE`."""


def request(order: Mapping[str, Any], affine: Affine, origin: Origin) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What to ask a job of kind `EXPORT`: its request and its inputs."""
    return {"order": dict(order), "origin": asdict(origin)}, {"W": affine.matrix, "b": affine.offset}
