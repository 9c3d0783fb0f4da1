"""Measure an array file, or a model on a task by layer and pooling."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from isoviz import metrics
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.metrics.cloud import draw
from isoviz.metrics.measuring import as_json, measure_cloud, notes_of, reading_of
from isoviz.metrics.record import CloudRecord, Reading
from isoviz.metrics.sample import Sample
from isoviz.tables import catalogue, stores
from isoviz.tasks.protocol import OwnTask

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.exploring.encoders import FinishedRun
    from isoviz.models.sources import ModelSource
    from isoviz.models.views import Pooling
    from isoviz.readouts import Annotations
    from isoviz.readouts.slices import Slice
    from isoviz.tasks.protocol import Task, TaskData
    from isoviz.vectors import VectorSet

MOST_PAIRED = 20_000
"""Points for metrics over pairs where there is one cloud only; the table takes fewer per cloud."""
_OF_FILES = (
    "column",
    "labels",
    "label_column",
    "pairs",
    "queries",
    "by",
    "sample",
    "seed",
    "as_weights",
    "skip_bad_rows",
)
_SETTINGS = RunConfig.model_fields
_FILE: Final[dict[str, JsonValue]] = {"metavar": "FILE"}

Progress = Callable[[int, int, str], None]
"""Called with the steps done, all steps, and what they are."""


class CloudRequest(BaseModel):
    """Where vectors come from: a file of embeddings, or a model on a task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    embeddings: str | None = Field(
        None,
        description=f"vectors: {catalogue.described('array', 'table', 'vectors')}; text also as .gz; "
        "or the URL of a database (docs/stores.md)",
        json_schema_extra=_FILE,
    )
    model: str | None = Field(
        None,
        description="bundled model, local directory or hub id, which may end in @REVISION; run:ID for a run; or --embeddings",
    )
    task: str = Field("demo/acceptability", description="the task whose texts are read")
    data: str | None = Field(
        None, description="the task's files; for --task own also one file", json_schema_extra={"metavar": "DIR"}
    )
    direction: str | None = Field(None, description=_SETTINGS["direction"].description)
    split: str = Field("validation", description="split of the task")
    layer: int | None = Field(None, description="one cloud: from 1, 0 is the embedding output (default: the last)")
    pooling: Literal["sentence", "cls", "last", "mean", "tokens", "head"] | None = Field(
        None,
        description="one cloud (default: sentence for a sentence-transformers model, else cls, for a decoder last); without a "
        "layer and a pooling, a table of all layers and poolings too",
    )
    prompt: str | None = Field(None, description="prompt of a sentence-transformers model (default: the model's)")
    truncate_dim: int | None = Field(None, description="keep the first N dimensions of its sentence vectors")
    column: str | None = Field(
        None,
        min_length=1,
        description="the vectors in the file: a column of lists, dim_* or names with commas for one column per dimension, or an array",
    )
    labels: str | None = Field(
        None,
        min_length=1,
        description="column of its labels, or a table with a column 'label': read-outs of labels too",
    )
    label_column: str | None = Field(
        None, min_length=1, description="column of the labels in the table of --labels, if it is not 'label'"
    )
    skip_bad_rows: bool = Field(False, description="leave out rows of the file without a readable vector")
    pairs: str | None = Field(
        None,
        min_length=1,
        description="scored pairs of ids, or relevance of documents to queries; adds their read-outs",
        json_schema_extra=_FILE,
    )
    queries: str | None = Field(
        None,
        min_length=1,
        description="the questions of a search, if they are in a file of their own; with --pairs, their relevance",
        json_schema_extra=_FILE,
    )
    by: str | None = Field(
        None,
        min_length=1,
        description="also by slice: a column of the file, or length (quartiles of the length of its texts)",
        json_schema_extra={"metavar": "COLUMN|length"},
    )
    sample: int | None = Field(
        None, ge=2, description=f"rows of a database, drawn at random (default: {stores.MOST:,})"
    )
    seed: int | None = Field(None, ge=0, description="seed of that sample (default: 0)")
    max_eval: int | None = Field(None, ge=1, description="use the first N rows")
    allow_random: bool = Field(False, description=_SETTINGS["allow_random"].description)
    max_length: int = Field(128, ge=1, description="tokens read of a row")
    batch_size: int = Field(64, ge=1, description="rows per step")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="number format of the model's weights (default: as stored on an accelerator, float32 on the CPU)",
    )

    @property
    def whole(self) -> bool:
        """Whether the columns beside the vectors are needed, too."""
        return any(one is not None for one in (self.labels, self.pairs, self.queries, self.by))

    def check_labels(self) -> None:
        """Raise `InputError` for a column of a table of labels that is not given."""
        if self.label_column is not None and self.labels is None:
            raise InputError.at("label_column", "only with --labels FILE")


class MeasureRequest(CloudRequest):
    """What to measure: a file of embeddings, or a model on a task."""

    own: OwnTask | None = None
    as_weights: bool = Field(False, description="also I1 and I2, the file's rows read as output vectors")

    def check(self) -> None:
        """Raise `InputError` if it names neither a model nor a file, or what does not go with it."""
        if (self.model is None) == (self.embeddings is None):
            raise InputError.at("model", "give either a model or a file of embeddings")
        for name in _OF_FILES if self.embeddings is None else ():
            if getattr(self, name):
                raise InputError(f"{name}: only with --embeddings", field=name)
        self.check_labels()


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Attributes:
        document: all of it, for programs.
        name: of the headline cloud.
        headline: its record.
        by_layer: records of all layers and poolings, if no single one was asked for.
        across: what changes from layer to layer (`isoviz.exploring.layers.document`), if all were asked for.
        rows: texts that were read.
        columns: of a table that were read as dimensions.
        notes: what a reader must know.
        slices: by `MeasureRequest.by`.
        points, vector_set: that were read of a file; the set if its other columns were needed.
    """

    document: dict[str, Any]
    name: str
    headline: CloudRecord
    by_layer: list[CloudRecord] = field(default_factory=list)
    across: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    columns: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    points: NDArray[Any] | None = None
    vector_set: VectorSet | None = None


@contextmanager
def noting() -> Iterator[list[str]]:
    """What the readers of vectors warn of, such as a sample: complete when the context ends."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield notes
    notes += [str(one.message) for one in caught if issubclass(one.category, UserWarning)]


def document(request: MeasureRequest) -> dict[str, Any]:
    """The measures as one document, in a process of its own (`isoviz.jobs.guarded`)."""
    from isoviz.devices import available_cores

    if request.model is not None:
        import torch

        torch.set_num_threads(available_cores())  # the processes that read files have one
    with noting() as noted:
        measured = measure(request)
    notes = [*measured.document["warnings"], *measured.notes, *noted]
    return {**measured.document, "warnings": list(dict.fromkeys(notes))}


def measure(request: MeasureRequest, progress: Progress = lambda *_: None) -> Measured:
    """Every measure of a file of embeddings, or of a model.

    Raises:
        InputError: the request names neither or both, or cannot be carried out.
    """
    request.check()
    if request.embeddings is not None:
        with stores.reporting(progress):
            return _measure_file(request, request.embeddings)
    return _measure_model(request, str(request.model), progress)


def _measure_file(request: MeasureRequest, file: str) -> Measured:
    from isoviz.models import profile
    from isoviz.readouts import slices
    from isoviz.readouts.division import annotations_of, unanswered
    from isoviz.tables import arrays

    points, columns, vector_set = points_in(request, file)
    of = slices.slicing(vector_set.columns, request.by) if vector_set is not None and request.by is not None else None
    by_slice: list[Slice] = []
    try:
        most = MOST_PAIRED if points.size * 8 <= profile.STREAM_ABOVE else profile.MOST_PAIRED
        record = profile.measure(points, name=catalogue.title(file), most=most)
        weights = {"as_weights": _partition(points)} if request.as_weights else {}
        read_outs: dict[str, Any] = {}
        left_out: tuple[str, ...] = ()
        if vector_set is not None:
            annotations = annotations_of(vector_set)
            left_out = annotations.notes
            record = record.with_readings(_lidar(points, annotations))
            record = record.model_copy(update={"notes": (*record.notes, *unanswered(vector_set))})
            read_outs = _read_outs(vector_set, annotations)
            by_slice = [] if of is None else slices.measured(points, annotations, of)
    except ValueError as error:
        arrays.check_finite(points, "embeddings")  # says where
        raise InputError.at("embeddings", f"{error}") from None
    if 1 < record.n < record.d:
        transposed = f"rows are points: {record.n} of them, {record.d} numbers each; transpose the array if its columns are the points"
        record = record.model_copy(update={"notes": (*record.notes, transposed)})
    cloud = {"name": record.cloud, **({"columns": columns} if columns else {})}
    values = {"cloud": cloud, **as_json(record), **weights, **read_outs}
    values |= {"slices": [asdict(one) for one in by_slice]} if by_slice else {}
    notes = [*notes_of(record), *left_out]
    of_file: dict[str, Any] = {"slices": by_slice, "points": points, "vector_set": vector_set}
    return Measured(values, record.cloud, record, columns=columns, notes=notes, **of_file)


def points_in(request: CloudRequest, file: str) -> tuple[NDArray[Any], list[str], VectorSet | None]:
    """The vectors in the file, the columns of a table with them, and their labels and pairs if read-outs are requested."""
    from isoviz import vectors

    skip = request.skip_bad_rows
    column = request.column if stores.is_store(file) else None
    file = stores.with_options(file, column=column, sample=request.sample, seed=request.seed)
    if not request.whole:
        return *vectors.reading.named_array(file, request.column, "embeddings", skip), None
    table = request.labels if request.labels is not None and vectors.reading.names_file(request.labels) else None
    label = request.labels if table is None else request.label_column
    columns = vectors.Columns(points=request.column, label=label, group=group_of(request.by))
    related: dict[str, Any] = {"relations": request.pairs, "questions": request.queries}
    vector_set = vectors.read(file, columns, beside=table, field="embeddings", skip_bad=skip, **related)
    if skipped := vector_set.facts.get("skipped"):
        warnings.warn(f"embeddings: {skipped}", stacklevel=2)
    if request.labels is None:
        vector_set = replace(vector_set, columns=vector_set.columns.drop(columns="label", errors="ignore"))
    elif "label" not in vector_set.columns:
        if table is not None:
            raise vectors.reading.no_labels(table)
        raise InputError.at(
            "labels", f"'{catalogue.title(file)}' is an array without columns; name a table with a column 'label'"
        )
    return vector_set.points, vector_set.facts.get("dimensions", []), vector_set


def group_of(by: str | None) -> str | None:
    """The column of a file that its slices need."""
    return None if by == "length" else by


def _lidar(points: NDArray[Any], annotations: Annotations) -> dict[str, Reading]:
    """LiDAR of the rows with a label, which are its groups; nothing without labels."""
    if annotations.labels is None:
        return {}
    some = draw(len(annotations.labels.rows), MOST_PAIRED)
    sample = Sample(points[annotations.labels.rows[some]], inputs={"groups": annotations.labels.codes[some]})
    reading = reading_of(metrics.get("lidar"), sample)
    return {"lidar": reading.model_copy(update={"points": sample.n if sample.n < len(points) else None})}


def _read_outs(vector_set: VectorSet, row_annotations: Annotations) -> dict[str, dict[str, Any]]:
    """By what they need (labels, pairs, queries): how many there are, and the read-outs by slug."""
    from isoviz import readouts
    from isoviz.readouts.image import Image

    counts: dict[str, dict[str, Any]] = {}
    if row_annotations.labels is not None:
        codes = row_annotations.labels.codes
        sizes = np.unique(codes, return_counts=True)[1]
        counts["labels"] = {"classes": len(sizes), "rows": len(codes), "most_common": float(sizes.max() / len(codes))}
    if row_annotations.pairs is not None:
        counts["pairs"] = {"pairs": len(row_annotations.pairs.left)}
    if (relevance := row_annotations.queries) is not None:
        counts["queries"] = {"queries": len(relevance.queries), "documents": len(relevance.documents)}
    first = next(iter(counts), "")
    slugs: dict[str, str] = {
        slug: readout.needs for slug, readout in readouts.CATALOGUE.items() if readout.needs in counts
    }
    slugs |= {"noise_floor": first} if first else {}
    for slug, statistic in readouts.measure(Image(vector_set.points), row_annotations, slugs).items():
        counts[slugs[slug]][slug] = statistic.value
    return counts


def rows_in(request: CloudRequest, columns: OwnTask | None = None) -> tuple[Task, TaskData, pd.DataFrame]:
    """The task of a request, its data, and the rows that are read. Raises `InputError` for a split that it does not have."""
    from isoviz import tasks
    from isoviz.tasks import own

    task = tasks.get(request.task, own.completed(request.data, columns) if columns else None)
    rows = tasks.load(task, request.data, task.checked_direction(request.direction) or None)
    frames = {"train": rows.train, "validation": rows.validation, **rows.extra}
    if request.split not in frames:
        raise InputError.at("split", f"no split '{request.split}' (allowed: {', '.join(frames)})")
    return task, rows, frames[request.split].iloc[: request.max_eval]


def _measure_model(request: MeasureRequest, model: str, progress: Progress) -> Measured:
    from isoviz.exploring import encoders, layers
    from isoviz.models import sources

    source = encoders.resolve(model)
    task, rows, frame = rows_in(request, request.own)

    from isoviz.models.extract import layer_views, offered_poolings, usual_pooling
    from isoviz.models.profile import profile
    from isoviz.models.profile import record as record_of

    all_clouds = request.layer is None and request.pooling is None
    columns = [frame[column].tolist() for column in task.inputs]
    by_layer: list[CloudRecord] = []
    across: dict[str, Any] = {}
    head: CloudRecord | None = None
    with encoders.opened(model) as (encoder, run):
        if run is None:
            encoder = source = sources.fetch(encoder, progress)
        offered, _ = offered_poolings(encoder, len(columns))
        pooling: Pooling = request.pooling or _usual(request, offered, usual_pooling(encoder, len(columns)))
        read: tuple[Pooling, ...] = offered if all_clouds else (pooling,)
        if run is not None:  # the encoder's own head is not the run's
            columns = encoders.prefixed(columns, run.before)
            read = tuple(one for one in read if one != "head") or ("mean",)
            if pooling == "head":
                _check_head(request, run)
        views = layer_views(
            encoder,
            columns,
            poolings=read,
            layers="all" if all_clouds else "last" if request.layer is None else [request.layer],
            max_length=request.max_length,
            allow_random=request.allow_random,
            batch_size=request.batch_size,
            direction=task.checked_direction(request.direction) or None,
            prompt=request.prompt,
            truncate=request.truncate_dim,
            dtype=request.dtype,
            progress=progress,
        )
        layer = views.depth if request.layer is None else request.layer
        if run is not None and (pooling == "head" or (all_clouds and run.scores_rows)):
            points = run.head_points(columns, views.max_length)
            place = {"layer": views.depth, "pooling": "head", "truncated": views.truncated}
            most = MOST_PAIRED if pooling == "head" else None
            head = measure_cloud(Sample(points), "head", split=request.split, where=place, most=most)
        if all_clouds:
            by_layer = [*profile(views, split=request.split, progress=progress), *([head] if head else [])]
            headline = next(one for one in by_layer if (one.layer, one.pooling) == (layer, pooling))
        elif head is not None:
            headline = head
        else:
            headline = record_of(views, layer, pooling, split=request.split, most=MOST_PAIRED)
        weights = _output_embeddings(source, run) if all_clouds else None
    where = "last layer" if request.layer is None else f"layer {layer}"
    name = f"{model} on {request.task} ({request.split}), {where}, {pooling}"
    asked = {key: getattr(request, key) for key in ("model", "task", "split", "layer", "prompt", "truncate_dim")}
    of_model = {"model_fingerprint": source.fingerprint, "model_revision": source.revision}
    of_data = {"data_fingerprint": rows.fingerprint, "data_revision": rows.revision, "texts": list(task.inputs)}
    cloud = {"name": name, **asked, "pooling": pooling, **of_model, **of_data}
    values = {**as_json(headline), "truncated": headline.truncated, "cloud": cloud}
    if all_clouds:
        across = layers.document(views, pooling)
        values |= {
            "by_layer": [_line_json(one) for one in by_layer],
            "across_layers": across,
            "output_embeddings": weights,
        }
    return Measured(values, name, headline, by_layer, across, views.rows, notes=[*views.warnings, *notes_of(headline)])


def _usual(request: MeasureRequest, offered: Sequence[Pooling], usual: Pooling) -> Pooling:
    """The pooling of one cloud where none is named; earlier layers have no sentence vectors."""
    if usual == "sentence" and request.layer is not None:
        return next(one for one in offered if one != "sentence")
    return usual


def _check_head(request: MeasureRequest, run: FinishedRun) -> None:
    if request.layer is not None:
        raise InputError.at("layer", "the head reads the last layer; omit --layer with --pooling head")
    if not run.scores_rows:
        raise InputError.at(
            "pooling", f"the head of {request.model} reads every token, not one vector per row; choose another pooling"
        )


def _line_json(record: CloudRecord) -> dict[str, Any]:
    where = {"cloud": record.cloud, "layer": record.layer, "pooling": record.pooling, "split": record.split}
    return {**where, **as_json(record), "truncated": record.truncated}


def _output_embeddings(source: ModelSource, run: FinishedRun | None) -> dict[str, Any] | None:
    from isoviz.models.checkpoint import output_embeddings

    weights = output_embeddings(source) if run is None else run.model.output.weight.detach().float().cpu().numpy()
    return None if weights is None or not len(weights) else _partition(weights)


def _partition(weights: NDArray[Any]) -> dict[str, Any]:
    """I1 and I2 of W (N, d) as it is and divided by its root-mean-square row norm, for neither is free of scale."""
    from isoviz.metrics.partition_function import Variant, partitions

    norms = np.asarray(metrics.row_norms(weights))
    plain, unit = (pair or (math.nan, math.nan) for pair in partitions(weights, [Variant(), Variant(scale_free=True)]))
    unit = plain if not norms.any() else unit
    return {
        "n": weights.shape[0],
        "d": weights.shape[1],
        "convention": "definition",
        "i1": plain[0],
        "i2": plain[1],
        "i1_unit": unit[0],
        "i2_unit": unit[1],
        **{f"norm_{name}": float(getattr(norms, name)()) for name in ("mean", "min", "max")},
    }
