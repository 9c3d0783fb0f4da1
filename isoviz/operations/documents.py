"""Runs as documents for programs: one run, a list, and mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from isoviz import metrics
from isoviz.events import Started
from isoviz.metrics.measuring import measurement_json
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from isoviz.runs.summaries import RunSummary

NO_SCORE = ("loss", "epoch")
"""Metrics of a task that are no scores."""


def started_of(store: Store, run_id: str) -> Started | None:
    """What a run said when it began: its baselines and notes. None before that."""
    return next(iter(store.events_of_kind(run_id, Started, limit=1)), None)


Beginning = Started | RunSummary
"""What knows a run's baselines and notes: its own event, or its summary in the store."""


def as_json(row: RunRow, started: Beginning | None = None) -> dict[str, Any]:
    """A run as `train --json`, `runs list` and `runs show` give it.

    Args:
        started: for `baselines` and `notes`.
    """
    result = row.result
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "config": row.config.model_dump(mode="json"),
        "metrics": result.metrics if result else {},
        "collapsed": row.collapsed,
        "random_weights": result.random_weights if result else "",
        "baselines": started.baselines if started else {},
        "isotropy": measurement_json(result.isotropy) if result else {},
        "timing": result.timing if result else {},
        "weights": result.weights.model_dump() if result and result.weights else None,
        "notes": list(started.notes) if started else [],
        "warnings": warnings_of(row, started),
        "error": row.error,
    }


def warnings_of(row: RunRow, started: Beginning | None = None) -> list[str]:
    """Everything that a reader of a run must know, one sentence each; arguments as for `as_json`."""
    notes = [row.left_out] if row.left_out else []
    notes += row.progress.warnings if row.progress else []
    notes += started.notes if started else []
    if row.result is not None:
        if row.result.random_weights:
            notes.append(f"random weights: {row.result.random_weights}")
        for slug in metrics.catalogue():
            reading = row.result.isotropy.reading(slug)
            if reading is not None and reading.undefined and row.result.isotropy.number(slug) is None:
                notes.append(f"{slug} is undefined: {reading.undefined}")
    elif row.error:
        notes.append(f"{row.error.get('message', '')} {row.error.get('advice') or ''}".rstrip())
    return list(dict.fromkeys(notes))


def document(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Runs as one JSON document, with the warnings of all of them."""
    return {"runs": list(runs), "warnings": list(dict.fromkeys(text for run in runs for text in run["warnings"]))}


def of_run(store: Store, run_id: str) -> dict[str, Any]:
    """A run of the store."""
    return as_json(store.get(run_id), store.summary(run_id))


def shown(store: Store, run_id: str) -> dict[str, Any]:
    """One run in full. `provenance` is its environment: its newest `started` event, of which a resumed run has several; empty
    before the first."""
    newest = store.newest_of_kind(run_id, Started)
    provenance = {**newest[1].model_dump(mode="json", exclude={"kind"}), "time": newest[0]} if newest else {}
    return document([{**of_run(store, run_id), "provenance": provenance}])


def exported(store: Store, run_ids: Iterable[str]) -> dict[str, Any]:
    """Runs with their tags, notes and all events."""
    runs = []
    for run_id in run_ids:
        row = store.get(run_id)
        events, cursor = [], 0
        while batch := store.events(run_id, after=cursor):
            events += [{"seq": seq, **event} for seq, event in batch]
            cursor = batch[-1][0]
        runs.append({**of_run(store, run_id), "tags": list(row.tags), "note": row.note, "events": events})
    return document(runs)


def listed(rows: Iterable[RunRow], summaries: Iterable[RunSummary]) -> dict[str, Any]:
    """The document of a list of runs, in the order of their summaries. A run that was launched after the rows were read is left out."""
    readable = {row.id: row for row in rows}
    return document([as_json(readable[run.id], run) for run in summaries if run.id in readable])
