"""What lists show of a run: columns of the table of runs, and one JSON text beside them.

Both are derived from the run's configuration and events, and written in the same transaction, so that a list of runs is one query
and parses no configurations and results.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, RowMapping, and_, true

from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import ENDINGS, Event, Finished, Started
from isoviz.metrics.record import Measurement
from isoviz.runs.rows import STATUSES, RunRow, collapse_of, left_out
from isoviz.runs.schema import runs as _runs

Numbers = Mapping[str, float | None]

METRIC: Final = "metric"
BASELINE: Final = "baseline"
TIMING: Final = "timing"
POINTS: Final = "n"
DIMENSIONS: Final = "d"
CLOUDS: Final = ("head", "layers", "output")
"""Kinds of numbers: task metrics, the scores of simple baselines, seconds, the sizes of each cloud, and
under a cloud's name the isotropy metrics that the run reports of it."""

_COLUMNS: Final = ("model", "task", "method", "seed")
LISTED: Final = ("id", "name", "group_name", "status", "owner", "created", "visitor", *_COLUMNS)


@dataclass(frozen=True)
class RunSummary:
    """One run as lists show it.

    Attributes:
        params: the method's parameters.
        setup: equal for runs that differ in nothing but their seed (`RunConfig.setup_key`).
        numbers: by kind (see above) and name. Values are those of finished runs, but for `baseline`.
        undefined: metric of isotropy → why it has no value.
        collapsed: why a finished run learned nothing (`rows.collapse_of`); empty where it learned something.
        steps: optimiser steps planned; None before it started.
        message, advice: how it failed, diverged or was lost.
        eval_rows: rows of the validation split; None before it started.
        visitor: who launched it in the browser; None for the command line.
    """

    id: str
    name: str
    group: str | None
    status: str
    owner: str | None
    created: float
    model: str = ""
    task: str = ""
    data: str | None = None
    method: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    setup: str = ""
    seed: int = 0
    epochs: int = 0
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    undefined: Mapping[str, str] = field(default_factory=dict)
    collapsed: str = ""
    steps: int | None = None
    random_weights: str = ""
    notes: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""
    eval_rows: int | None = None
    visitor: str | None = None

    @property
    def left_out(self) -> str:
        """Why comparisons leave out a finished run, as in `RunRow.left_out`."""
        return left_out(self.collapsed, self.steps)

    @property
    def metrics(self) -> Numbers:
        """Task metrics of a finished run, as it reported them."""
        return self.numbers.get(METRIC, {})

    @property
    def baselines(self) -> Numbers:
        """Scores of simple baselines, by name."""
        return self.numbers.get(BASELINE, {})

    @property
    def isotropy(self) -> dict[str, float | None]:
        """All reported isotropy metrics by slug; of the head if measured there."""
        return {slug: value for cloud in reversed(CLOUDS) for slug, value in self.numbers.get(cloud, {}).items()}

    def size(self, cloud: str) -> tuple[int, int] | None:
        """(points, dimensions) of a cloud; None if unknown."""
        n, d = (self.numbers.get(kind, {}).get(cloud) for kind in (POINTS, DIMENSIONS))
        return (int(n), int(d)) if n and d else None


# ------------------------------------------------------------------------------------------------------- deriving


def columns(config: RunConfig) -> dict[str, Any]:
    """The columns of a new run that lists show."""
    shown = {"data": config.data, "params": config.params, "setup": config.setup_key(), "epochs": config.epochs}
    return {**{name: getattr(config, name) for name in _COLUMNS}, "summary": json.dumps(shown)}


def after(text: str, events: Sequence[Event]) -> str | None:
    """The JSON text of a summary after more events; None if they do not change it."""
    shown = dict(_parsed(text))
    for event in events:
        if isinstance(event, Started):
            baselines = {name: _finite(value) for name, value in event.baselines.items()}
            shown |= {"notes": event.notes, "eval_rows": event.eval_rows, "steps": event.total_steps}
            shown["numbers"] = {**shown.get("numbers", {}), BASELINE: baselines}
        elif event.kind in ENDINGS:
            numbers = {kind: values for kind, values in shown.get("numbers", {}).items() if kind == BASELINE}
            shown |= dict.fromkeys(("collapsed", "random_weights", "message", "advice"), "")
            shown |= {"undefined": {}, **_of_ending(event, numbers)}
    return None if shown == _parsed(text) else json.dumps(shown)


def _of_ending(event: Event, numbers: Mapping[str, Numbers]) -> dict[str, Any]:
    if not isinstance(event, Finished):
        return {"numbers": numbers, "message": getattr(event, "message", ""), "advice": getattr(event, "advice", "")}
    reported: dict[str, dict[str, float | None]] = {
        METRIC: {name: _finite(value) for name, value in event.metrics.items()},
        TIMING: {name: _finite(value) for name, value in event.timing.items()},
    }
    undefined = _add_isotropy(reported, event.isotropy)
    return {
        "numbers": {**numbers, **reported},
        "undefined": undefined,
        "collapsed": collapse_of(event) or "",
        "random_weights": event.random_weights,
    }


def _add_isotropy(numbers: dict[str, dict[str, float | None]], isotropy: Measurement) -> dict[str, str]:
    """Adds the isotropy metrics of each cloud that represents the run; returns metric → why it is undefined."""
    undefined = {}
    sizes = {name: (cloud.n, cloud.d, cloud) for name in ("head", "layers") if (cloud := isotropy.cloud(name))}
    if isotropy.output is not None:
        sizes["output"] = isotropy.output.rows, isotropy.output.d, isotropy.output  # type: ignore[assignment]
    for name, (n, d, record) in sizes.items():
        numbers.setdefault(POINTS, {})[name], numbers.setdefault(DIMENSIONS, {})[name] = n, d
        for slug, reading in record.readings.items():
            if isotropy.headline_cloud(slug) != name or isinstance(reading.value, tuple):
                continue
            numbers.setdefault(name, {})[slug] = _finite(reading.value)
            if reading.undefined:
                undefined[slug] = reading.undefined
    return undefined


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def summary_of(row: RunRow) -> RunSummary:
    """A run's summary, but for baselines, notes and number of validation rows, which its event `started` has."""
    own = {name: getattr(row, "group" if name == "group_name" else name) for name in LISTED[:7]}
    config = columns(row.config)
    text = config.pop("summary")
    text = after(text, [row.result] if row.result is not None else []) or text
    summary = summary_of_record({**own, **config, "summary": text})
    if row.result is None and row.error:
        message, advice = (str(row.error.get(name) or "") for name in ("message", "advice"))
        return replace(summary, message=message, advice=advice)
    return summary


# -------------------------------------------------------------------------------------------------------- reading


class Facet(NamedTuple):
    """A combination of properties, and its number of runs."""

    group: str | None
    model: str
    task: str
    method: str
    status: str
    runs: int


def where(
    status: str | Iterable[str] | None,
    group: str | None,
    *,
    model: Collection[str] = (),
    task: Collection[str] = (),
    method: Collection[str] = (),
) -> ColumnElement[bool]:
    """The condition on runs. Raises `InputError`."""
    parts: list[ColumnElement[bool]] = []
    if status is not None:
        statuses = [status] if isinstance(status, str) else list(status)
        for status_name in statuses:
            if status_name not in STATUSES:
                raise InputError(f"unknown status '{status_name}' (allowed: {', '.join(STATUSES)})", field="status")
        parts.append(_runs.c.status.in_(statuses))
    if group is not None:
        parts.append(_runs.c.group_name == group)
    for column, values in (("model", model), ("task", task), ("method", method)):
        if values:
            parts.append(_runs.c[column].in_(list(values)))
    return and_(true(), *parts)


@functools.lru_cache(maxsize=8192)
def _parsed(text: str) -> Mapping[str, Any]:
    """Cached, because pages list all runs at every rerun."""
    shown: dict[str, Any] = json.loads(text)
    return {**shown, "notes": tuple(shown.get("notes", ()))}


def summary_of_record(record: RowMapping | Mapping[str, Any]) -> RunSummary:
    """The summary in the columns `LISTED` and `summary` of the table of runs."""
    own = {"group" if name == "group_name" else name: record[name] for name in LISTED}
    return RunSummary(**own, **_parsed(record["summary"]))
