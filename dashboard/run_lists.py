"""Runs of the store as frames: read with the filters in SQL, and kept until something that lists show has changed.

What is kept is shared by all visitors, so it must not be changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pandas as pd

from dashboard import resources, tables
from isoviz.runs.naming import method_title

T = TypeVar("T")

KEPT: Final = 64
"""Frames and figures kept at once; the ones used least recently go first."""

_lock = threading.Lock()
_kept: OrderedDict[Hashable, tuple[str, Any]] = OrderedDict()


def cached(key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, made once for a key as long as no run comes, goes, changes its status, its name or its numbers."""
    library = resources.library()
    of_store = (library.key, key)
    revision = library.revision()  # before reading: what changes meanwhile is read again
    with _lock:
        known = _kept.get(of_store)
        if known is not None and known[0] == revision:
            _kept.move_to_end(of_store)
            value: T = known[1]
            return value
    value = make()
    with _lock:
        _kept[of_store] = (revision, value)
        _kept.move_to_end(of_store)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return value


def facets() -> pd.DataFrame:
    """Which experiments, models, tasks, methods and statuses there are: one line for each combination, with its number of `runs`.

    The visitor's come first; `example` marks those of the examples.
    """

    def made() -> pd.DataFrame:
        library = resources.library()
        frame = pd.DataFrame(library.facets(), columns=["group", "model", "task", "method", "status", "runs"])
        titles = {slug: method_title(slug) for slug in frame["method"].unique()}
        shipped = library.examples.experiments if library.examples else ()
        return frame.assign(
            example=frame["group"].isin(shipped), group=frame["group"].fillna(""), title=frame["method"].map(titles)
        )

    return cached("facets", made)


@dataclass(frozen=True)
class Filter:
    """Which runs: of one experiment, or of all but the examples for None; of these models, tasks, methods and statuses, if any."""

    group: str | None = None
    model: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    status: tuple[str, ...] = ()


def frame(chosen: Filter) -> pd.DataFrame:
    """Runs as `tables.runs_frame` gives them, newest first. Those that cannot be read are left out."""

    def made() -> pd.DataFrame:
        found = resources.library().summaries(
            group=chosen.group,
            status=chosen.status or None,
            model=chosen.model,
            task=chosen.task,
            method=chosen.method,
        )
        return tables.runs_frame(run for run in found if not run.unreadable)

    return cached(chosen, made)
