"""Own texts encoded in the background: the result is a `VectorSet` like any other, under the key of the job."""

from __future__ import annotations

from typing import Any, Final

from isoviz.errors import InputError
from isoviz.jobs.kinds import ENCODERS, Job, JobKind
from isoviz.vectors import sets
from isoviz.vectors.sets import TextSet, VectorSet


def request(
    texts: str,
    model: str,
    fingerprint: str,
    *,
    pooling: str | None = None,
    prompt: str | None = None,
    truncate: int | None = None,
) -> dict[str, Any]:
    """What `ENCODING` is asked for.

    Args:
        texts: the key of kept texts.
        model: see `isoviz.models.extract.encode`, as for the others.
        fingerprint: of the model (`isoviz.models.sources.resolve`): a folder may hold another one tomorrow.
    """
    settings = {"pooling": pooling, "prompt": prompt, "truncate": truncate}
    return {"texts": texts, "model": model, "fingerprint": fingerprint, **settings}


def _encode(job: Job) -> None:
    from isoviz.models import extract, sources

    asked = job.request
    try:
        kept = sets.load_any(asked["texts"])
    except KeyError:
        raise InputError("texts: these texts are no longer cached; load them again", field="texts") from None
    assert isinstance(kept, TextSet)
    source = sources.resolve(asked["model"])
    settings = {name: asked[name] for name in ("pooling", "prompt", "truncate")}
    points = extract.encode(source, kept.columns["text"].tolist(), **settings, progress=job.report)
    pooling = settings["pooling"] or extract.usual_pooling(source)
    facts = {"model": asked["model"], "texts": asked["texts"], **settings, "pooling": pooling}
    job.publish(*sets.stored(VectorSet(points, kept.columns, name=kept.name, facts=facts)))


ENCODING: Final = JobKind(
    name="own texts",
    room=__name__,
    work=_encode,
    results=sets.STORE,
    lane=ENCODERS,
    prepare="isoviz.exploring.jobs:prepare",  # by name: the spare of every kind that reads with an encoder
    memory_field="texts",
    memory_advice="Take fewer texts, or close other programs that use memory.",
)
"""Of a `request`; `isoviz.vectors.load` reads the result by the key of the job."""
