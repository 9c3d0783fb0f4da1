"""Runs of the store as frames: filtered in SQL, and cached until a displayed value changes; the warnings
about runs that learned nothing or cannot be read.

Cached values are shared by all visitors, so do not modify them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pandas as pd
import streamlit as st

from dashboard.shared import resources, tables, wording
from isoviz.errors import StoreError
from isoviz.runs.comparisons import nothing_learned
from isoviz.runs.naming import method_title
from isoviz.runs.rows import RunProgress, RunRow

T = TypeVar("T")


def cached(key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, cached for a key until a run is added or deleted, or its status, name or numbers change."""
    library = resources.library()
    made: T = _made(library.key, library.revision(), key, make)
    return made


@st.cache_resource(show_spinner=False, max_entries=64)
def _made(store: str, revision: str, key: Hashable, _make: Callable[[], Any]) -> Any:
    return _make()


def of_address(name: str) -> RunRow | None:
    """The run that a query parameter names; None without one, or with a message if it cannot be shown."""
    run_id = st.query_params.get(name)
    if not run_id:
        return None
    try:
        return resources.library().get(run_id)
    except StoreError:
        reason = "It may have been deleted, or the link is incomplete."
        st.warning(f"Run “{wording.plain(run_id)}” not found. {reason}", icon=":material/search_off:")
    return None


def activity(row: RunRow) -> str:
    """What a running run does."""
    progress = row.progress or RunProgress()
    if not progress.total_steps:
        return wording.plain(progress.phase or "starting")
    return f"step {progress.step} of {progress.total_steps}"


def facets() -> pd.DataFrame:
    """Existing experiments, models, tasks, methods and statuses: one row per combination, with its number of `runs`.

    The visitor's rows come first; `example` marks rows of the examples.
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
    """A filter of runs by experiment (None: all except examples), models, tasks, methods and statuses (empty: all)."""

    group: str | None = None
    model: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    status: tuple[str, ...] = ()


def under_way(run_filter: Filter) -> int:
    """Number of queued and running runs."""
    return int(frame(run_filter)["status"].isin(["queued", "running"]).sum())


def frame(run_filter: Filter) -> pd.DataFrame:
    """Runs as `tables.runs_frame`, newest first."""

    def made() -> pd.DataFrame:
        summaries = resources.library().summaries(
            group=run_filter.group,
            status=run_filter.status or None,
            model=run_filter.model,
            task=run_filter.task,
            method=run_filter.method,
        )
        return tables.runs_frame(summaries)

    return cached(run_filter, made)


# ------------------------------------------------------------------------------------------------------ runs that learned nothing

WARNING: Final = "warning"
"""Heading of the column with the warning in files."""


def warnings(runs: pd.DataFrame) -> list[str]:
    """One sentence for each model and task without a run that beats the best simple approach.

    Args:
        runs: from `tables.runs_frame`, with each task's primary metric in `value`.
    """
    columns = ("status", "model", "task", "data", "primary", "metrics", "baselines")
    scores: dict[tuple[str, str, str], list[float | None]] = {}
    simple: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for status, model, task, data, primary, metrics, baselines in zip(*(runs[name] for name in columns), strict=True):
        if status == "finished":
            scores.setdefault((model, task, data), []).append(metrics.get(primary))
            simple.setdefault((model, task, data), {}).update(baselines)
    sentences = {key: nothing_learned(key[1], values, simple[key]) for key, values in scores.items()}
    if len(sentences) == 1:
        return [warning for warning in sentences.values() if warning]
    return [f"{model} on {task}: {warning}" for (model, task, _), warning in sentences.items() if warning]


def show_warnings(warnings: Sequence[str]) -> None:
    """Show each warning in a box."""
    for warning in warnings:
        st.warning(wording.plain(warning), icon=":material/error:")


def with_warnings(table: pd.DataFrame, warnings: Sequence[str]) -> pd.DataFrame:
    """A table for a file, with the warnings in a column if there are any."""
    text = " ".join(warnings)
    return table.assign(**{WARNING: text}) if text else table
