"""Your own texts and vectors instead of a task. Texts go through an encoder, as a task's rows do; vectors count as one layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isoviz import tasks, vectors
from isoviz.errors import InputError
from isoviz.tasks.protocol import Task
from isoviz.vectors import TextSet, VectorSet

if TYPE_CHECKING:
    import pandas as pd

TEXTS: Final = "texts"
VECTORS: Final = "vectors"
EVERY: Final = "all"
"""The split of an own set: it has no other."""
POOLING: Final = "vectors"
"""The pooling of the one cloud of own vectors: they come as they are."""
_FEW_CODES: Final = 20
"""Whole numbers with at most so many values are groups, each with its colour."""


def _task(slug: str, title: str) -> Task:
    return Task(
        slug=slug,
        title=title,
        description=title,
        columns=("text",),
        label_names=(),
        metrics=(),
        primary="",
        source="Own data",
        licence="Their owner's.",
        kind="seq2seq",
    )


TASKS: Final = {TEXTS: _task(TEXTS, "Own texts"), VECTORS: _task(VECTORS, "Own vectors")}
"""In the place of a task of the catalogue, where a request names one of a person's own sets."""


def task_of(slug: str) -> Task:
    """A task of the catalogue, or what stands in its place for own texts and vectors."""
    return TASKS.get(slug) or tasks.get(slug)


def is_own(slug: str) -> bool:
    """Whether a view is of own texts or vectors: its `data` is then the key of what was kept."""
    return slug in TASKS


def found(slug: str, key: str | None) -> TextSet | VectorSet:
    """The kept set of a view; `InputError` if it is gone."""
    try:
        uploaded = vectors.load_any(key or "")
    except KeyError:
        raise InputError(f"data: these {slug} are no longer on this server; upload them again", field="data") from None
    if isinstance(uploaded, TextSet) != (slug == TEXTS):
        raise InputError(f"data: the key belongs to another kind of set, not to {slug}", field="data")
    return uploaded


def forget(key: str) -> list[str]:
    """Delete a kept set with what was made of it: the vectors of its texts, and views; the keys of the sets."""
    from isoviz.exploring import results

    forgotten = [key, *vectors.STORE.keys(lambda facts: facts.get("facts", {}).get("texts") == key)]
    for set_key in forgotten:
        vectors.forget(set_key)
    for view in results.STORE.keys(lambda facts: facts.get("request", {}).get("data") in forgotten):
        results.STORE.forget(view)
    return forgotten


def rows_of(uploaded: TextSet | VectorSet) -> pd.DataFrame:
    """The columns of a set as a view shows them: whole numbers that are few as groups, not as quantities."""
    table = uploaded.columns.copy()
    for name in ("label", "group"):
        if name in table and table[name].dtype.kind in "iub" and table[name].nunique() <= _FEW_CODES:
            table[name] = table[name].astype(str)
    return table
