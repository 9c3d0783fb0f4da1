"""Encoding texts and demo sets in the background; the vectors are stored like uploaded ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.exploring import encoders
from isoviz.exploring.jobs import PREPARE
from isoviz.exploring.request import reading_files
from isoviz.jobs.kinds import ENCODERS, Job, JobKind
from isoviz.models import hub, sources
from isoviz.models.views import Pooling
from isoviz.vectors import VectorSet, demo_sets
from isoviz.vectors.searches import DOCUMENT, QUERY
from isoviz.vectors.sets import STORE, facts_of, stored

MODEL: Final = "demo/tiny-bert"
FIRST_LAYER: Final = 2
"""Layer of the bundled encoder on a first visit: its cosines are crowded, so transforms have a visible effect."""
_LONGEST: Final = 256


@dataclass(frozen=True)
class TextsRequest:
    """Texts through an encoder, one vector per text.

    Attributes:
        texts: the slug of a demo set, or the key of stored texts.
        model: see `isoviz.exploring.encoders`.
        layer: layer whose tokens are averaged; None for the model's own sentence vectors, or its last layer if it has none.
        dtype: number format of the weights (`isoviz.models.placing.Dtype`).
    """

    texts: str
    model: str = MODEL
    layer: int | None = None
    dtype: Any = "auto"

    def as_json(self) -> dict[str, Any]:
        """JSON form, including the model's version: its commit on the hub, or its weights, tokenizer and modules."""
        source = encoders.resolve(self.model)
        content: dict[str, Any] = {"weights": source.fingerprint, "reading": reading_files(source)}
        if source.revision is not None:  # known even before the download
            content = {"revision": source.revision}
        if self.dtype != "auto":
            content["dtype"] = self.dtype
        return {"texts": self.texts, "model": self.model, "layer": self.layer, **content}


def recorded(request: TextsRequest) -> str | None:
    """Key of a demo set's bundled vectors; None for other layers and models, or if the encoder has changed."""
    key = demo_sets.RECORDED.get(request.texts)
    facts = facts_of(key) if key is not None else None
    return key if facts is not None and facts["facts"]["request"] == request.as_json() else None


def compute(
    request: TextsRequest, report: Callable[[int, int, str], None]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of the vectors."""
    if request.texts in demo_sets.TITLES:
        text_set: vectors.TextSet | VectorSet = demo_sets.read(request.texts)
    else:
        try:
            text_set = vectors.load_any(request.texts)
        except KeyError:
            raise InputError("texts: these texts are no longer on this server", field="texts") from None
    if isinstance(text_set, vectors.TextSet) and (empty := text_set.n - (filled := text_set.without_empty()).n):
        text_set = replace(filled, name=f"{text_set.name}, without {empty:,} empty texts")
    return stored(encoded(text_set, request.model, request.layer, report, request.dtype, texts=request.texts))


def encoded(
    text_set: vectors.TextSet | VectorSet,
    model: str,
    layer: int | None = None,
    report: Callable[[int, int, str], None] = lambda *_: None,
    dtype: Any = "auto",
    **facts: Any,
) -> VectorSet:
    """The vectors of texts. Of a search, a sentence-transformers model reads questions and documents with its prompts for these. The fact
    `milliseconds` is what a text took, with loading, if no layer was asked for."""
    from isoviz.models import extract

    columns = text_set.columns
    parts: dict[str | None, NDArray[np.intp]] = {None: np.arange(len(columns))}
    found, began, done = [], time.perf_counter(), 0
    with encoders.opened(model) as (source, run):
        if run is None:
            source = sources.fetch(source, lambda *download: report(0, len(columns), hub.in_words(*download)))
        offered, _ = extract.offered_poolings(source, 1)
        pooling: Pooling = "sentence" if "sentence" in offered and layer is None else "mean"
        texts = columns["text"].tolist()
        if run is not None and pooling != "sentence":  # sentence vectors have their own prompts
            (texts,) = encoders.prefixed([texts], run.before)
        if pooling == "sentence" and "group" in columns and set(columns["group"]) == {QUERY, DOCUMENT}:
            parts = {side: np.flatnonzero(columns["group"] == side) for side in (DOCUMENT, QUERY)}
        for prompt, rows in parts.items():

            def told(read: int, _: int, words: str, before: int = done) -> None:
                report(before + read, len(columns), words)

            views = extract.layer_views(
                source,
                [[texts[row] for row in rows]],
                poolings=[pooling],
                layers="last" if layer is None else [layer],
                max_length=_LONGEST,
                prompt=prompt,
                dtype=dtype,
                progress=told,
            )
            ((at, _),) = views.clouds
            found.append(views.points(at, pooling))
            done += len(rows)
    points = np.empty((len(columns), found[0].shape[1]), found[0].dtype)
    points[np.concatenate(list(parts.values()))] = np.concatenate(found)
    facts |= {
        "model": model,
        "pooling": pooling,
        "layer": at,
        "max_length": views.max_length,
        "model_fingerprint": source.fingerprint,
        "model_revision": source.revision,
    }
    if dtype != "auto":
        facts["dtype"] = dtype
    if layer is None:
        facts["milliseconds"] = round(1000 * (time.perf_counter() - began) / len(columns), 3)
    kept = text_set.pairs, text_set.relation, text_set.name
    return VectorSet(points, columns, *kept, facts, text_set.notes)


def _work(job: Job) -> None:
    asked = job.request
    request = TextsRequest(asked["texts"], asked["model"], asked["layer"], asked.get("dtype", "auto"))
    job.publish(*compute(request, job.report))


ENCODED: Final = JobKind(
    name="encoded texts", room=__name__, work=_work, results=STORE, pool=ENCODERS, prepare=PREPARE, warm_seconds=60.0
)
"""Jobs for a `TextsRequest`; `isoviz.vectors.load` reads the result."""
