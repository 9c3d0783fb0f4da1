"""The ruler of a file of embeddings, of a model's vectors, or of a stored set: which pairs are related, and what a cosine then means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from isoviz.errors import InputError
from isoviz.operations.measure import CloudRequest, Progress, group_of, noting, points_in, rows_in
from isoviz.readouts import ruler as rulers
from isoviz.readouts.ruler import Reading, Ruler, near_misses
from isoviz.readouts.ruler.near_misses import NearMisses
from isoviz.readouts.ruler.pairs import SHARE_OF_HIGHEST as SHARE_OF_HIGHEST
from isoviz.readouts.ruler.records import check_cosine
from isoviz.tables import arrays, catalogue, stores
from isoviz.tasks.protocol import OWN

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.readouts.slices import Slice
    from isoviz.tasks.protocol import Task
    from isoviz.vectors import TextSet, VectorSet

Known = Literal["pairs", "labels", "none"]
"""How a set says which of its rows are related."""
_RELATED_LABELS: Final = ("paraphrase", "equivalent", "duplicate", "entailment")
"""Labels of related pairs, in the tasks of the catalogue."""
_CLOUD: Final = (
    *("model_fingerprint", "model_revision", "task", "split", "texts", "data_fingerprint", "data_revision"),
    *("layer", "pooling", "prompt", "truncate_dim", "max_length"),
)
"""Facts of a set's vectors that a ruler keeps."""


class RulerRequest(CloudRequest):
    """What to measure a ruler on: a file of embeddings, or a model's vectors of a task's or your own texts; and what to read on it."""

    model: str | None = Field(
        None,
        description="bundled model, local directory or hub id, which may end in @REVISION; run:ID for a run; with --embeddings only "
        "the name of their encoder, for the record",
    )
    task: str = Field(
        "demo/similarity",
        description="the task whose texts are read; of rated pairs, paraphrases and the like, also what is related",
    )
    data: str | None = Field(None, description="the task's files", json_schema_extra={"metavar": "DIR"})
    layer: int | None = Field(None, description="from 1, 0 is the embedding output (default: the last)")
    texts: str | None = Field(
        None,
        min_length=1,
        description="instead of a task, your own texts: .txt with one per line, or a table with a column 'text'",
        json_schema_extra={"metavar": "FILE"},
    )
    pooling: Literal["sentence", "cls", "last", "mean", "tokens", "head"] | None = Field(
        None, description="one vector per text (default: sentence for a sentence-transformers model, else mean)"
    )
    labels: str | None = Field(
        None,
        min_length=1,
        description="column of labels, or a table with a column 'label' beside embeddings: rows with the same one are related",
    )
    pairs: str | None = Field(
        None,
        min_length=1,
        description="scored pairs of ids, or relevance of documents to queries",
        json_schema_extra={"metavar": "FILE"},
    )
    related_from: float | None = Field(
        None, description="scored pairs with at least this score are related (default: 0.8 of the highest)"
    )
    share: float | None = Field(
        None,
        description="of the pairs that you will compare, how many are related (default: 0.5; in a search, relevant ÷ all pairs)",
    )
    precision: float = Field(0.9, description="wanted of a threshold")
    cosine: tuple[float, ...] = Field(
        (), description="cosines to read on the ruler", json_schema_extra={"metavar": "X"}
    )

    def check(self) -> None:
        """Raise `InputError` if it names neither a model nor a file, or what does not go together."""
        if self.embeddings is None and self.model is None:
            raise InputError("model: give either a model or a file of embeddings", field="model")
        for name in ("column", "label_column", "sample", "seed") if self.embeddings is None else ():
            if getattr(self, name) is not None:
                raise InputError(f"{name}: only with --embeddings", field=name)
        if self.skip_bad_rows and self.embeddings is None:
            raise InputError("skip_bad_rows: only with --embeddings", field="skip_bad_rows")
        self.check_labels()
        if self.embeddings is not None and self.texts is not None:
            raise InputError("texts: only with a model, which reads texts; not with embeddings", field="texts")
        if self.task == OWN:
            raise InputError("task: give your own texts as a file, with --texts", field="task")
        if self.texts is not None and self.task != type(self).model_fields["task"].default:
            raise InputError("texts: give your own texts or a task, not both", field="texts")
        if self.labels and self.pairs:
            raise InputError("pairs: give labels or pairs, not both", field="pairs")
        if (self.pairs or self.queries) and self.embeddings is None and self.texts is None:
            raise InputError("pairs: only with embeddings or your own texts; a task has its own pairs", field="pairs")
        for value in self.cosine:
            check_cosine(value)


@dataclass(frozen=True)
class Measured:
    """A ruler, and the cosines that were read on it.

    Attributes:
        name: of the vectors.
        notes: what a reader must know.
    """

    ruler: Ruler
    readings: list[Reading]
    name: str
    notes: tuple[str, ...] = ()
    slices: Sequence[Slice] = ()
    near: NearMisses | None = None

    @property
    def asked(self) -> float:
        """The cosine at which near misses are counted: a recommended threshold, else the first that was read, else the noise floor."""
        related = self.ruler.related
        if related and related.threshold and related.threshold.recommended:
            return related.threshold.cosine
        return self.readings[0].cosine if self.readings else self.ruler.floor[-2].cosine

    @property
    def document(self) -> dict[str, Any]:
        """All of it, for programs."""
        read: dict[str, Any] = {"readings": [one.model_dump() for one in self.readings]}
        read |= {"slices": [asdict(one) for one in self.slices]} if self.slices else {}
        read |= {"near_misses": self.near.above(self.asked)} if self.near else {}
        return self.ruler.model_dump(mode="json") | read | {"warnings": list(self.notes)}


def document(request: RulerRequest) -> dict[str, Any]:
    """The ruler as one document, in a process of its own (`isoviz.jobs.guarded`)."""
    if request.embeddings is None:
        import torch

        from isoviz.devices import available_cores

        torch.set_num_threads(available_cores())  # the processes that read files have one
    with noting() as notes:
        measured = measure(request)
    return replace(measured, notes=(*measured.notes, *notes)).document


def measure(request: RulerRequest, progress: Progress = lambda *_: None) -> Measured:
    """The ruler of a request.

    Raises:
        InputError: the request contradicts itself or cannot be carried out, or `rulers.ruler` refuses the vectors.
    """
    from isoviz.readouts.division import unanswered

    request.check()
    notes: tuple[str, ...] = ()
    found: list[Slice] = []
    near = None
    settings: dict[str, Any] = {"share": request.share, "precision": request.precision, "progress": progress}
    vector_set: VectorSet | None
    if request.embeddings is None:
        vector_set, near, notes = _encoded(request, progress)
        name = vector_set.name
    else:
        with stores.reporting(progress):
            points, _, vector_set = points_in(request, request.embeddings)
        arrays.check_finite(points, "embeddings")  # says where
        name = catalogue.title(request.embeddings)
    try:
        if vector_set is None:
            ruler = rulers.ruler(points, model=request.model, **settings)
        else:
            known: Known = "labels" if request.labels is not None else "none" if vector_set.pairs is None else "pairs"
            ruler = of_set(vector_set, known, related_from=request.related_from, model=request.model, **settings)
            if request.by is not None:
                found = by_slice(vector_set, ruler, request.by, known, request.related_from)
            notes = (*notes, *unanswered(vector_set)) if known == "pairs" else notes
    except InputError as error:
        if error.field != "points":
            raise
        field = "embeddings" if request.embeddings is not None else "texts"  # the options that the points come from
        raise InputError(str(error).replace("points", field, 1), field=field, advice=error.advice) from None
    return Measured(ruler, [ruler.read(value) for value in request.cosine], name, notes, found, near)


# ------------------------------------------------------------------------------------------------------- of a set


def known_in(vector_set: VectorSet | TextSet) -> list[Known]:
    """How this set can say which rows are related, the default first."""
    from isoviz.readouts.division import label_codes

    named: list[Known] = ["pairs"] if vector_set.pairs is not None else []
    if label_codes(vector_set.columns)[0] is not None:
        named.append("labels")
    return [*named, "none"]


def of_set(
    vector_set: VectorSet,
    known: Known | None = None,
    *,
    related_from: float | None = None,
    model: str | None = None,
    **settings: Any,
) -> Ruler:
    """The ruler of a set, whose pairs or labels say which rows are related.

    Args:
        known: how; None for its default, `known_in`.
        related_from: scored pairs with at least this score are related; None: `SHARE_OF_HIGHEST` of the highest.
        model: name of the encoder; None for the set's.
        settings: of `isoviz.ruler`: share, precision, progress.

    Raises:
        InputError: the set has no such pairs or labels, or `isoviz.ruler` refuses it.
    """
    facts = vector_set.facts
    rows, related, words = _related(vector_set, known, related_from)
    cloud = {name: facts[name] for name in _CLOUD if facts.get(name) is not None}
    if "request" in facts:  # vectors of demo sets that ship
        cloud.setdefault("model_fingerprint", facts["request"]["weights"])
    model = model or facts.get("model")
    points = vector_set.points if rows is None else vector_set.points[rows]
    return rulers.ruler(points, **related, relation=words, model=model, cloud=cloud or None, **settings)


def by_slice(
    vector_set: VectorSet, ruler: Ruler, by: str, known: Known | None = None, related_from: float | None = None
) -> list[Slice]:
    """What a ruler of this set says of its slices (`isoviz.readouts.slices`). Raises `InputError` like `slicing`."""
    from isoviz.readouts import slices

    rows, related, _ = _related(vector_set, known, related_from)
    of = slices.slicing(vector_set.columns, by)
    points = vector_set.points
    if rows is not None:
        points, of = points[rows], slices.Slicing(of.codes[rows], of.names)
    relation = rulers.pairs.relation_of(related.get("pairs"), related.get("labels"), len(points))
    found = ruler.hits or ruler.related
    threshold = found.threshold.cosine if found and found.threshold and found.threshold.recommended else None
    floor = next(level.cosine for level in ruler.floor if level.share == 0.99)
    pairs = None if relation is None else relation.pairs
    return slices.on_ruler(points, of, pairs, related.get("documents"), floor, threshold)


def _related(
    vector_set: VectorSet, known: Known | None, related_from: float | None
) -> tuple[NDArray[np.intp] | None, dict[str, Any], str | None]:
    """The rows that are compared (None: all), the arguments of `rulers.ruler` that say which are related, and the same in words."""
    from isoviz.readouts.division import annotations_of, label_codes

    facts, known = vector_set.facts, known or known_in(vector_set)[0]
    if known == "labels":
        codes, why_not = label_codes(vector_set.columns)
        if codes is None:
            raise InputError(f"labels: {why_not or 'these vectors have none'}", field="labels")
        words = f"rows with the same label ({int(codes.max()) + 1} labels)"
        labelled = np.flatnonzero(codes >= 0)
        return labelled if len(labelled) < len(codes) else None, {"labels": codes[labelled].tolist()}, words
    if known == "none":
        return None, {}, None
    found = annotations_of(replace(vector_set, columns=vector_set.columns.drop(columns="label", errors="ignore")))
    if (rated := found.pairs) is not None:
        least = SHARE_OF_HIGHEST * rated.score.max() if related_from is None else related_from
        enough = rated.score >= least
        default = f" ({SHARE_OF_HIGHEST:g} of the highest, {rated.score.max():g})" if related_from is None else ""
        words = facts.get("related") or f"pairs with a score of at least {least:g}{default}"
        return None, {"pairs": np.stack([rated.left[enough], rated.right[enough]], axis=1)}, words
    if (search := found.queries) is not None:
        good = search.grade > 0
        left, right = search.queries[search.query[good]], search.documents[search.document[good]]
        related = {"pairs": np.stack([left, right], axis=1), "documents": search.documents}
        return None, related, "queries and the documents that are relevant to them"
    raise InputError("pairs: these vectors have none", field="pairs")


# ---------------------------------------------------------------------------------------------------------- texts


def _encoded(request: RulerRequest, progress: Progress) -> tuple[VectorSet, NearMisses, tuple[str, ...]]:
    """One vector per text of the request's model, its near misses, and notes.

    The fact `related` says which pairs are, if their scores do not.
    """
    from isoviz.exploring import encoders
    from isoviz.models import sources
    from isoviz.models.extract import layer_views, offered_poolings
    from isoviz.vectors import VectorSet

    assert request.model is not None
    source = encoders.resolve(request.model)
    given, facts = texts_in(request)
    texts = given.without_empty()
    notes = [f"{given.n - texts.n:,} of {given.n:,} texts are empty and were left out"] if texts.n < given.n else []
    direction = facts.pop("direction", None)
    with encoders.opened(request.model) as (encoder, run):
        if run is None:
            encoder = source = sources.fetch(encoder, progress)
        offered, _ = offered_poolings(encoder)
        usual: Any = "sentence" if "sentence" in offered and request.layer is None else "mean"
        pooling = request.pooling or usual
        if pooling in ("tokens", "head"):
            allowed = ", ".join(name for name in offered if name not in ("tokens", "head"))
            raise InputError(f"pooling: '{pooling}' is not the vector of a text (allowed: {allowed})", field="pooling")
        lines = [*texts.columns["text"], *near_misses.texts()]
        views = layer_views(
            encoder,
            encoders.prefixed([lines], run.before) if run else [lines],
            poolings=[pooling],
            layers="last" if request.layer is None else [request.layer],
            max_length=request.max_length,
            allow_random=request.allow_random,
            batch_size=request.batch_size,
            direction=direction,
            prompt=request.prompt,
            truncate=request.truncate_dim,
            dtype=request.dtype,
            progress=progress,
        )
    layer = views.depth if request.layer is None else request.layer
    facts |= {
        "model": request.model,
        "model_fingerprint": source.fingerprint,
        "model_revision": source.revision,
        "layer": layer,
        "pooling": pooling,
        "prompt": request.prompt,
        "truncate_dim": request.truncate_dim,
        "max_length": views.max_length,
    }
    name = f"{request.model} on {texts.name}, layer {layer}, {pooling}"
    points = views.points(layer, pooling)
    near = near_misses.near_misses(points[texts.n :])
    vector_set = VectorSet(points[: texts.n], texts.columns, texts.pairs, texts.relation, name, facts)
    unknown = f"'{request.task}' does not say which of its pairs are related, so only unrelated pairs are measured"
    notes += [unknown] if facts.get("pairs") and texts.pairs is None else []
    return vector_set, near, (*notes, *views.warnings)


def texts_in(request: RulerRequest) -> tuple[TextSet, dict[str, Any]]:
    """Different texts with what is known about them, and facts."""
    from isoviz import vectors

    if request.texts is not None:
        columns = vectors.Columns(label=request.labels, group=group_of(request.by))
        own = vectors.read_texts(request.texts, columns, relations=request.pairs, questions=request.queries)
        return own, {"texts": own.name, "data_fingerprint": own.key}
    task, rows, frame = rows_in(request)
    texts, related = texts_of_task(task, frame, request.labels)
    facts = {
        "task": request.task,
        "split": request.split,
        "data_fingerprint": rows.fingerprint,
        "data_revision": rows.revision,
        "direction": task.checked_direction(request.direction) or None,
        "pairs": len(task.inputs) == 2 or task.kind == "embedding",
        "related": related,
    }
    return replace(texts, name=f"{request.task} ({request.split})"), facts


def texts_of_task(task: Task, frame: pd.DataFrame, labels: str | None = None) -> tuple[TextSet, str]:
    """The different texts of a task's rows with their related pairs; and which these are, if it is not by their score.

    Rated pairs keep their scores. Of labelled pairs those with a label such as *paraphrase* are related; of questions with a context,
    each question and its context. Of single texts nothing is known, except their labels if these are requested.
    """
    import pandas as pd

    from isoviz.vectors import TextSet

    name, words, score = task.slug, "", None
    if len(task.inputs) == 1 and task.kind != "embedding":
        texts = frame[[task.inputs[0]]].set_axis(["text"], axis=1).assign(text=lambda rows: rows["text"].astype(str))
        if labels not in (None, "label"):
            raise InputError(f"labels: the labels of a task are in the column 'label' (got '{labels}')", field="labels")
        if labels is not None and not task.label_names:
            raise InputError(f"labels: '{task.slug}' has no classes", field="labels")
        texts = texts.assign(label=frame["label"].to_numpy()) if labels is not None else texts
        return TextSet(texts.drop_duplicates("text").reset_index(drop=True), name), ""
    if labels is not None:
        raise InputError(f"labels: those of '{task.slug}' are of pairs; its related pairs are known", field="labels")
    left, right = (frame[column].astype(str) for column in task.columns[:2])
    if task.reference == "label" and not task.label_names:
        score = frame["label"].astype(float)
    elif task.kind == "embedding":
        score, words = pd.Series(1.0, frame.index), "texts of one row"
    elif task.kind == "span":
        score, words = pd.Series(1.0, frame.index), "each question and the text that answers it"
    else:
        related = next((label for label in _RELATED_LABELS if label in task.label_names), None)
        score = (frame["label"] == task.label_names.index(related)).astype(float) if related else None
        words = f"pairs with the label '{related}'"
    every = pd.unique(pd.concat([left, right]))
    if score is None:
        return TextSet(pd.DataFrame({"text": every}), name), ""
    ids = {text: f"t{number}" for number, text in enumerate(every)}
    pairs = pd.DataFrame({"left": left.map(ids), "right": right.map(ids), "score": score.to_numpy()})
    pairs = (
        pairs[pairs["left"] != pairs["right"]]
        .sort_values("score", kind="stable")
        .drop_duplicates(["left", "right"], keep="last")
    )
    columns = pd.DataFrame({"id": list(ids.values()), "text": every})
    return TextSet(columns, name, pairs.sort_index().reset_index(drop=True), "similarity"), words
