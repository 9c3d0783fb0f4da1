"""The user's texts and vectors instead of a task. Texts go through an encoder like a task's rows; vectors count as one layer."""

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
ALL_ROWS: Final = "all"
"""The only split of a user's set."""
POOLING: Final = "vectors"
"""The pooling of the only cloud of a user's vectors."""
_FEW_CODES: Final = 20
"""Integer columns with at most this many values are categories instead of quantities."""


def _task(slug: str, title: str) -> Task:
    return Task(
        slug=slug,
        title=title,
        description=title,
        columns=("text",),
        metrics=(),
        source="Own data",
        licence="Their owner's.",
        kind="seq2seq",
    )


TASKS: Final = {TEXTS: _task(TEXTS, "Own texts"), VECTORS: _task(VECTORS, "Own vectors")}
"""Pseudo-tasks for requests with a user's set."""


def task_of(slug: str) -> Task:
    """A task of the catalogue, or the pseudo-task for a user's texts or vectors."""
    return TASKS.get(slug) or tasks.get(slug)


def is_user_set(slug: str) -> bool:
    """Whether a view is of a user's texts or vectors; its `data` is then the key of the stored set."""
    return slug in TASKS


def load_set(slug: str, key: str | None) -> TextSet | VectorSet:
    """The stored set of a view. Raises `InputError` if it no longer exists."""
    try:
        uploaded = vectors.load_any(key or "")
    except KeyError:
        raise InputError(f"data: these {slug} are no longer on this server; upload them again", field="data") from None
    if isinstance(uploaded, TextSet) != (slug == TEXTS):
        raise InputError(f"data: the key belongs to another kind of set, not to {slug}", field="data")
    return uploaded


def forget(key: str) -> list[str]:
    """Delete a stored set with everything derived from it (vectors of its texts, and views); returns the deleted sets' keys."""
    from isoviz.exploring import results

    forgotten = [key, *vectors.STORE.keys(lambda facts: facts.get("facts", {}).get("texts") == key)]
    for set_key in forgotten:
        vectors.forget(set_key)
    for view in results.STORE.keys(lambda facts: facts.get("request", {}).get("data") in forgotten):
        results.STORE.forget(view)
    return forgotten


def rows_of(uploaded: TextSet | VectorSet) -> pd.DataFrame:
    """The columns of a set for a view, with small integers as categories."""
    table = uploaded.columns.copy()
    for name in ("label", "group"):
        if name in table and table[name].dtype.kind in "iub" and table[name].nunique() <= _FEW_CODES:
            table[name] = table[name].astype(str)
    return table
