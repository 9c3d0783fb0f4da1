"""What lists show of a run, in columns: derived from its configuration and events as they are written, read without parsing them.

A summary is written in the transaction of what it is derived from. Where one does not fit its run, because an older version or a
person changed the run, it is derived again as it is read; a run that cannot be read at all is listed with the reason.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import ENDINGS, Event, Finished, Started
from isoviz.metrics.record import Measurement
from isoviz.runs import schema
from isoviz.runs.rows import STATUSES, RunRow, UnreadableRunError, chance_of, collapse_of, row_of

Numbers = Mapping[str, float | None]

METRIC: Final = "metric"
BASELINE: Final = "baseline"
TIMING: Final = "timing"
SETTING: Final = "setting"
ERROR: Final = "error"
POINTS: Final = "n"
DIMENSIONS: Final = "d"
CLOUDS: Final = ("head", "layers", "output")
KINDS: Final = (METRIC, BASELINE, TIMING, SETTING, ERROR, POINTS, DIMENSIONS, *CLOUDS)
"""Kinds of numbers: task metrics, what simple guesses score, seconds, `slug:name` of what a metric was taken with, the sampling error
of a metric that was taken on a part of its cloud, the sizes of each cloud, and under a cloud's name the metrics of isotropy that
the run reports of it."""

_runs, _summaries, _setups, _numbers = schema.runs, schema.summaries, schema.setups, schema.numbers
_OF_RUN = (
    _runs.c.id,
    _runs.c.name,
    _runs.c.group_name,
    _runs.c.status,
    _runs.c.owner,
    _runs.c.created,
    _runs.c.visitor,
)


@dataclass(frozen=True)
class RunSummary:
    """One run as lists show it.

    Attributes:
        params: the method's parameters.
        setup: equal for runs that differ in nothing but their seed (`RunConfig.setup_key`).
        numbers: by kind (`KINDS`) and name. Values are those of finished runs, but for `baseline`.
        undefined: metric of isotropy → why it has no value.
        collapsed: why a finished run counts as collapsed (`rows.collapse_of`); empty where it does not.
        message, advice: how it failed, diverged or was lost.
        eval_rows: rows of the validation split; None before it started.
        visitor: who launched it in the browser; None for the command line.
        unreadable: why nothing but its id, name and status is known; empty for a run that can be read.
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
    random_weights: str = ""
    notes: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""
    eval_rows: int | None = None
    unreadable: str = ""
    visitor: str | None = None

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

    def home(self, slug: str) -> str:
        """The cloud on which the run reports a metric."""
        return next((cloud for cloud in CLOUDS if slug in self.numbers.get(cloud, {})), CLOUDS[0])

    def size(self, cloud: str) -> tuple[int, int] | None:
        """(points, dimensions) of a cloud; None if unknown."""
        n, d = (self.numbers.get(kind, {}).get(cloud) for kind in (POINTS, DIMENSIONS))
        return (int(n), int(d)) if n and d else None

    def settings(self, slug: str) -> dict[str, float]:
        """Settings of a metric, such as ζ of IsoScore*."""
        start = f"{slug}:"
        setting_values = self.numbers.get(SETTING, {}).items()
        return {
            name.removeprefix(start): value
            for name, value in setting_values
            if name.startswith(start) and value is not None
        }


# ------------------------------------------------------------------------------------------------------- deriving

Line = tuple[str, str, float | None, str]
"""Kind, name, value, reason if undefined."""


def _of_config(config: RunConfig) -> dict[str, Any]:
    return {
        "model": config.model,
        "task": config.task,
        "method": config.method,
        "seed": config.seed,
        "epochs": config.epochs,
    }


def _of_started(started: Started) -> tuple[dict[str, Any], list[Line]]:
    lines = [(BASELINE, name, _finite(value), "") for name, value in started.baselines.items()]
    return {"notes": json.dumps(started.notes), "eval_rows": started.eval_rows}, lines


def _of_ending(event: Event) -> tuple[dict[str, Any], list[Line]]:
    if not isinstance(event, Finished):
        return {"message": getattr(event, "message", ""), "advice": getattr(event, "advice", "")}, []
    lines = [(METRIC, name, _finite(value), "") for name, value in event.metrics.items()]
    lines += [(TIMING, name, _finite(value), "") for name, value in event.timing.items()]
    lines += _of_isotropy(event.isotropy)
    change = {
        "collapsed": collapse_of(event) or "",
        "random_weights": event.random_weights,
        "message": "",
        "advice": "",
    }
    return change, lines


def _of_isotropy(isotropy: Measurement) -> list[Line]:
    lines: list[Line] = []
    for name in ("head", "layers"):
        if cloud := isotropy.cloud(name):
            lines += [(POINTS, name, cloud.n, ""), (DIMENSIONS, name, cloud.d, "")]
            for slug, reading in cloud.readings.items():
                if isotropy.home(slug) == name:
                    lines += _of_reading(name, slug, reading)
    if isotropy.output is not None:
        lines += [(POINTS, "output", isotropy.output.rows, ""), (DIMENSIONS, "output", isotropy.output.d, "")]
        for slug, reading in isotropy.output.readings.items():
            if isotropy.home(slug) == "output":
                lines += _of_reading("output", slug, reading)
    return lines


def _of_reading(cloud: str, slug: str, reading: Any) -> list[Line]:
    if isinstance(reading.value, tuple):
        return []
    settings = [(SETTING, f"{slug}:{name}", _finite(value), "") for name, value in reading.settings.items()]
    errors = [(ERROR, slug, _finite(reading.error), "")] if reading.error is not None else []
    return [(cloud, slug, _finite(reading.value), reading.undefined), *settings, *errors]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def key_of(setup: str) -> str:
    """Thirty-two hex digits that identify a setup."""
    return hashlib.sha256(setup.encode()).hexdigest()[:32]


# -------------------------------------------------------------------------------------------------------- writing


def write_created(connection: Connection, configs: Mapping[str, RunConfig], texts: Mapping[str, str]) -> None:
    """Write summaries of new runs: id → configuration, and id → stored text."""
    _write_setups(connection, {config.setup_key() for config in configs.values()})
    connection.execute(insert(_summaries), [_new(run_id, config, texts[run_id]) for run_id, config in configs.items()])


def _new(run_id: str, config: RunConfig, text: str) -> dict[str, Any]:
    """The initial summary of a run, from its configuration."""
    empty = {"collapsed": "", "random_weights": "", "notes": "[]", "message": "", "advice": "", "eval_rows": None}
    initial = {"run_id": run_id, "setup": key_of(config.setup_key()), "config_length": len(text), "ending_length": None}
    return {**initial, **_of_config(config), **empty}


def _write_setups(connection: Connection, bodies: set[str]) -> None:
    # if several processes add the same setup, the first one wins
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert_new
    else:
        from sqlalchemy.dialects.postgresql import insert as insert_new  # type: ignore[assignment]
    rows = [{"key": key_of(body), "body": body} for body in sorted(bodies)]
    connection.execute(insert_new(_setups).on_conflict_do_nothing(), rows)


def concern(events: Sequence[Event]) -> bool:
    """Whether any of these events changes a summary."""
    return any(isinstance(event, Started) or event.kind in ENDINGS for event in events)


def write_events(
    connection: Connection, record: RowMapping, events: Sequence[Event], change: Mapping[str, Any]
) -> None:
    """Update a run's summary with new events.

    Args:
        record: the run's record before the events.
        change: their changes to it (`rows.change_of`).
    """
    for event in events:
        if isinstance(event, Started):
            _write(connection, record["id"], *_of_started(event), kinds=(BASELINE,))
    last = events[-1]
    if last.kind in ENDINGS:
        values, lines = _of_ending(last)
        after = {**record, **change}
        _write(connection, record["id"], {**values, "ending_length": _ending_length(after)}, lines, kinds=_ENDING_KINDS)


_ENDING_TEXTS: Final = ("progress", "result", "error")
_ENDING_KINDS: Final = tuple(kind for kind in KINDS if kind != BASELINE)


def _ending_length(record: RowMapping | Mapping[str, Any]) -> int:
    return sum(len(record[name] or "") for name in _ENDING_TEXTS)


def _write(
    connection: Connection, run_id: str, values: Mapping[str, Any], lines: Iterable[Line], *, kinds: Sequence[str]
) -> None:
    connection.execute(update(_summaries).where(_summaries.c.run_id == run_id).values(**values))
    connection.execute(delete(_numbers).where(_numbers.c.run_id == run_id, _numbers.c.kind.in_(kinds)))
    if rows := _number_rows(run_id, lines):
        connection.execute(insert(_numbers), rows)


def _number_rows(run_id: str, lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [
        {"run_id": run_id, "kind": kind, "place": place, "name": name, "value": value, "undefined": undefined}
        for place, (kind, name, value, undefined) in enumerate(lines)
    ]


FirstStarted = Callable[[str], Started | None]


def write_missing(connection: Connection, first_started: FirstStarted) -> None:
    """Recompute the summaries of all runs, for a store of an older version. Unreadable runs get none.

    Args:
        first_started: run id → the run's first `Started` event, or None.
    """
    connection.execute(delete(_numbers))
    connection.execute(delete(_summaries))
    ids = connection.scalars(select(_runs.c.id)).all()
    for first in range(0, len(ids), _AT_ONCE):
        chosen = select(_runs).where(_runs.c.id.in_(ids[first : first + _AT_ONCE]))
        _write_batch(connection, connection.execute(chosen).mappings().all(), first_started)


_AT_ONCE: Final = 200


def _write_batch(connection: Connection, records: Iterable[RowMapping], first_started: FirstStarted) -> None:
    setups: set[str] = set()
    rows: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for record in records:
        try:
            run = row_of(record, None)
        except UnreadableRunError:
            continue
        row = _new(run.id, run.config, record["config"])
        if (started := first_started(run.id)) is not None:
            values, baselines = _of_started(started)
            row |= values
            lines += _number_rows(run.id, baselines)
        if run.status in ENDINGS:
            values, numbers = _of_row(run)
            row |= {**values, "ending_length": _ending_length(record)}
            lines += _number_rows(run.id, numbers)
        setups.add(run.config.setup_key())
        rows.append(row)
    if rows:
        _write_setups(connection, setups)
        connection.execute(insert(_summaries), rows)
    if lines:
        connection.execute(insert(_numbers), lines)


def _of_row(row: RunRow) -> tuple[dict[str, Any], list[Line]]:
    if row.result is not None:
        return _of_ending(row.result)
    error = row.error or {}
    return {name: str(error.get(name) or "") for name in ("message", "advice")}, []


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
    """The condition on runs; of `model`, `task` and `method` on runs joined with their summaries. Raises `InputError`."""
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
            parts.append(_summaries.c[column].in_(list(values)))
    return and_(true(), *parts)


def read(
    connection: Connection,
    where: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]],
    limit: int | None,
    offset: int,
    kinds: Sequence[str] = KINDS,
) -> list[RunSummary]:
    """The summaries of some runs; `kinds`: kinds of numbers to read."""
    joined = _runs.outerjoin(_summaries, _summaries.c.run_id == _runs.c.id)
    with_setups = joined.outerjoin(_setups, _setups.c.key == _summaries.c.setup)
    columns = [column for column in _summaries.c if column.name not in _INSIDE]
    query = select(*_OF_RUN, stale().label("stale"), _setups.c.body.label("body"), *columns).select_from(with_setups)
    rows = connection.execute(query.where(where).order_by(*order).limit(limit).offset(offset)).all()
    run_ids = select(_runs.c.id).select_from(joined).where(where).order_by(*order).limit(limit).offset(offset)
    numbers, undefined = _read_numbers(connection, run_ids, kinds)
    summaries = []
    for row in rows:
        if row.stale:
            summaries.append(derived(connection, row.id))
            continue
        setup, data, params = _setup(row.body)
        summaries.append(
            RunSummary(
                id=row.id,
                name=row.name,
                group=row.group_name,
                status=row.status,
                owner=row.owner,
                created=row.created,
                model=row.model,
                task=row.task,
                data=data,
                method=row.method,
                params=params,
                setup=setup,
                seed=row.seed,
                epochs=row.epochs,
                numbers=numbers.get(row.id, {}),
                undefined=undefined.get(row.id, {}),
                collapsed=row.collapsed or _chance(numbers.get(row.id, {})),
                random_weights=row.random_weights,
                notes=() if row.notes == "[]" else tuple(json.loads(row.notes)),
                message=row.message,
                advice=row.advice,
                eval_rows=row.eval_rows,
                visitor=row.visitor,
            )
        )
    return [summary for summary in summaries if summary is not None]


def _chance(numbers: Mapping[str, Numbers]) -> str:
    """The collapse reason of a run whose summary predates the check for chance level."""
    return chance_of(numbers.get(METRIC, {}), numbers.get(POINTS, {}).get("head") or 0)


_INSIDE: Final = frozenset({"run_id", "setup", "config_length", "ending_length"})


def stale() -> ColumnElement[bool]:
    """Condition on the joined tables: the summary is missing or was derived from another version of the record."""
    ended = _runs.c.status.in_(sorted(ENDINGS))
    progress, result, error = (func.coalesce(func.length(_runs.c[name]), 0) for name in _ENDING_TEXTS)
    return or_(
        _summaries.c.run_id.is_(None),
        func.length(_runs.c.config) != _summaries.c.config_length,
        and_(ended, func.coalesce(_summaries.c.ending_length, -1) != progress + result + error),
    )


def _read_numbers(
    connection: Connection, chosen: Select[Any], kinds: Sequence[str]
) -> tuple[dict[str, dict[str, dict[str, float | None]]], dict[str, dict[str, str]]]:
    columns = (_numbers.c.run_id, _numbers.c.kind, _numbers.c.name, _numbers.c.value, _numbers.c.undefined)
    query = select(*columns).where(_numbers.c.run_id.in_(chosen.scalar_subquery()))
    if not kinds:
        return {}, {}
    if set(kinds) != set(KINDS):
        query = query.where(_numbers.c.kind.in_(kinds))
    numbers: dict[str, dict[str, dict[str, float | None]]] = {}
    undefined: dict[str, dict[str, str]] = {}
    for run_id, kind, name, value, why in connection.execute(query.order_by(*_numbers.primary_key.columns)).all():
        numbers.setdefault(run_id, {}).setdefault(kind, {})[name] = value
        if why:
            undefined.setdefault(run_id, {})[name] = why
    return numbers, undefined


@functools.lru_cache(maxsize=8192)
def _setup(body: str) -> tuple[str, str | None, Mapping[str, Any]]:
    """A setup's key in the current form, its data folder and its parameters, because older versions had fewer settings."""
    try:
        config = RunConfig.model_validate_json(body)
    except ValidationError:  # of a newer version: keep its setups distinct; opening a run shows the error
        settings = json.loads(body)
        return body, settings.get("data"), settings.get("params") or {}
    return config.setup_key(), config.data, config.params


def derived(connection: Connection, run_id: str) -> RunSummary | None:
    """A recomputed summary for a run with a stale one; None if the run no longer exists."""
    record = connection.execute(select(_runs).where(_runs.c.id == run_id)).mappings().one_or_none()
    if record is None:
        return None
    try:
        row = row_of(record, None)
    except UnreadableRunError as error:
        return _unreadable(record, error)
    return summary_of(row)


def _unreadable(record: RowMapping, error: UnreadableRunError) -> RunSummary:
    names = ("id", "name", "group_name", "status", "owner", "created")
    run, name, group, status, owner, created = (record[name] for name in names)
    return RunSummary(run, name, group, status, owner, created, unreadable=error.why, visitor=record["visitor"])


def unreadable(connection: Connection, suspects: Collection[str]) -> list[RunSummary]:
    """The unreadable runs, newest first, among the suspects and those whose record has another length than when it was written."""
    query = select(_runs.c.id).outerjoin(_summaries, _summaries.c.run_id == _runs.c.id).where(stale())
    listed = [derived(connection, run_id) for run_id in sorted({*connection.scalars(query), *suspects}, reverse=True)]
    return [summary for summary in listed if summary is not None and summary.unreadable]


def facets(connection: Connection) -> list[Facet]:
    """See `Store.facets`."""
    of_run = _summaries.c
    columns = (_runs.c.group_name, of_run.model, of_run.task, of_run.method, _runs.c.status)
    query = select(*columns, func.count()).join(_summaries, of_run.run_id == _runs.c.id)
    rows = connection.execute(query.group_by(*columns).order_by(func.max(_runs.c.id).desc())).all()
    return [Facet(*row) for row in rows]


def summary_of(row: RunRow, started: Started | None = None) -> RunSummary:
    """A run's summary; baselines, notes and number of validation rows come from its event `started`."""
    values, lines = _of_row(row)
    if started is not None:
        from_started, baselines = _of_started(started)
        values, lines = {**values, **from_started, "notes": tuple(started.notes)}, [*lines, *baselines]
    numbers: dict[str, dict[str, float | None]] = {}
    for kind, name, value, _ in lines:
        numbers.setdefault(kind, {})[name] = value
    return RunSummary(
        row.id,
        row.name,
        row.group,
        row.status,
        row.owner,
        row.created,
        visitor=row.visitor,
        data=row.config.data,
        params=row.config.params,
        setup=row.config.setup_key(),
        numbers=numbers,
        undefined={name: why for _, name, _, why in lines if why},
        **_of_config(row.config),
        **values,
    )
