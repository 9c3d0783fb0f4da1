"""A run's row in the store, and its progress for lists."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, get_args

from pydantic import BaseModel, ConfigDict
from sqlalchemy import RowMapping

from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import (
    ENDINGS,
    Checkpointed,
    Entered,
    Event,
    Finished,
    Measured,
    Number,
    Resumed,
    Started,
    Status,
    Stepped,
    Stopped,
)
from isoviz.tasks.chance import AT_CHANCE, CORRELATIONS, at_chance

STATUSES: tuple[str, ...] = get_args(Status)
RELEASE = -1.0
"""Value in the column `stop_requested` (otherwise the time of the request): the worker of the run asks for it, to put it back into
the queue."""


@dataclass(frozen=True)
class RunRow:
    """One run at one moment.

    Attributes:
        status: see `isoviz.events.Status`.
        created, queued, started, ended, heartbeat: seconds since 1970; `started` is that of the latest attempt.
        stop_requested: a stop was requested.
        resume: this attempt continues from the last checkpoint.
        attempt: token for the worker's writes; changes each time the run is claimed or queued again.
        owner: the process that claimed it, or for which it is reserved while queued.
        visitor: the visitor who launched it in the browser; None for the operator and the command line.
        pid, pid_started: the worker process and its start time from psutil.
        pid_scope: scope of `pid` (`isoviz.runs.identity.pid_scope`).
        error: the ending of a failed, diverged or lost run: `kind`, `message`, `advice`, …
        result: the final report of a finished run.
        position: position in the queue from 1; None if not waiting.
    """

    id: str
    name: str
    group: str | None
    status: Status
    config: RunConfig
    created: float
    queued: float
    started: float | None
    ended: float | None
    heartbeat: float | None
    stop_requested: bool
    resume: bool
    attempt: int
    owner: str | None
    host: str | None
    device: str | None
    pid: int | None
    pid_started: float | None
    pid_scope: str | None
    visitor: str | None
    tags: tuple[str, ...]
    note: str
    error: dict[str, Any] | None
    result: Finished | None
    progress: RunProgress | None
    position: int | None = None

    @property
    def attempts(self) -> int:
        """Number of workers that have started it."""
        return 0 if self.progress is None else self.progress.attempts

    @property
    def collapsed(self) -> str | None:
        """The reason why a finished run learned nothing (constant predictions or chance level), as text; None otherwise."""
        return None if self.result is None else collapse_of(self.result)

    @property
    def left_out(self) -> str:
        """Why comparisons leave out a finished run (`left_out`); "" where they do not."""
        return left_out(self.collapsed, None if self.progress is None else self.progress.total_steps)


_PLAIN: Final = frozenset(
    {field.name for field in fields(RunRow)}
    - {"group", "config", "stop_requested", "resume", "tags", "error", "result", "progress", "position"}
)
"""Fields of a row that are columns as they are."""


FEWEST_STEPS = 50
"""Optimiser steps below which a run that learned nothing counts as undertrained, not as collapsed."""


def left_out(reason: str | None, steps: float | None) -> str:
    """Why comparisons leave out a run that learned nothing: *collapsed*, or *undertrained* after few `steps`; "" without a reason."""
    if not reason:
        return ""
    if steps is not None and steps < FEWEST_STEPS:
        return f"undertrained: {reason} after {steps:g} steps; train longer"
    return f"collapsed: {reason}"


def collapse_of(result: Finished) -> str | None:
    """The reason why a run learned nothing (constant predictions or chance level), as text; None otherwise."""
    head = result.isotropy.cloud("head")
    # A Matthews correlation of exactly 0 does not count: with varying predictions, the validation split has one class.
    correlation = next((value for name in CORRELATIONS if (value := result.metrics.get(name))), None)
    return result.collapsed or (AT_CHANCE if at_chance(correlation, head.n if head else 0) else None)


def row_of(data: RowMapping, position: int | None) -> RunRow:
    """The run of one record of the `runs` table. Raises `StoreError` for one of a newer version, or damaged."""
    parsed: dict[str, Any] = {}
    for name, parse in _PARSERS.items():
        try:
            parsed[name] = None if data[name] is None else parse(data[name])
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(
                f"run '{data['id']}' is unreadable: its {name} is not valid ({text[:120]})", field="id"
            ) from error
    return RunRow(
        **{name: data[name] for name in _PLAIN},
        **parsed,
        group=data["group_name"],
        stop_requested=data["stop_requested"] is not None,
        resume=bool(data["resume"]),
        position=position,
    )


@dataclass(frozen=True)
class Signals:
    """The fields of a running run that runner and worker poll.

    Attributes:
        stop: a stop was requested.
        phase: see `isoviz.events.Entered`.
        checkpoint_step: the optimiser step of its last checkpoint.
        step_seconds: measured seconds per optimiser step; 0 before the first report.
    """

    status: str
    attempt: int
    stop: bool
    phase: str | None
    checkpoint_step: int
    step_seconds: float


def signals_of(data: RowMapping) -> Signals:
    """The signals of one record of the `runs` table."""
    progress = _progress(data)
    return Signals(
        status=data["status"],
        attempt=data["attempt"],
        stop=data["stop_requested"] is not None,
        phase=progress.phase or None,
        checkpoint_step=progress.checkpoint_step,
        step_seconds=progress.step_seconds or 0.0,
    )


class RunProgress(BaseModel):
    """A run's progress for lists, from its latest events."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="null")

    phase: str = ""
    step: int = 0
    total_steps: int | None = None
    eta_seconds: Number | None = None
    step_seconds: float | None = None
    checkpoint_step: int = 0
    measured_epoch: int | None = None
    attempts: int = 0
    writer: int | None = None
    warnings: tuple[str, ...] = ()


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "config": RunConfig.model_validate_json,
    "tags": lambda text: tuple(map(str, json.loads(text))),
    "error": lambda text: dict(json.loads(text)),
    # Cached, because pages list all runs at every rerun and results never change.
    "result": functools.lru_cache(maxsize=4096)(Finished.model_validate_json),
    "progress": RunProgress.model_validate_json,
}
"""Columns of JSON text."""


def _progress(record: RowMapping) -> RunProgress:
    """The progress so far; empty if unreadable, so that the run can still be watched, stopped and ended."""
    try:
        return RunProgress.model_validate_json(record["progress"] or "{}")
    except ValueError:
        return RunProgress()


def fold(progress: RunProgress, event: Event) -> RunProgress:
    """The progress after another event."""

    def taken(*names: str, **more: Any) -> RunProgress:
        return progress.model_copy(update={**{name: getattr(event, name) for name in names}, **more})

    match event:
        case Entered():
            return taken("phase")
        case Started():
            return taken("total_steps", phase="training", step=event.first_step)
        case Resumed():
            warnings = dict.fromkeys([*progress.warnings, *filter(None, [event.warning])])
            return taken("step", checkpoint_step=event.step, warnings=tuple(warnings))
        case Stepped():
            seconds = event.step_seconds or progress.step_seconds
            return taken("step", "eta_seconds", phase="training", step_seconds=seconds)
        case Measured():
            return taken(measured_epoch=event.epoch)
        case Checkpointed():
            return taken("step", checkpoint_step=event.step)  # some steps before it were not reported
    return progress


def check_writer(record: RowMapping, attempt: int | None, *, ending: bool) -> None:
    """Check that events come from the current attempt of a running run; a waiting run can only be ended."""
    status = record["status"]
    if status in ENDINGS or (status == "queued" and not ending):
        raise StoreError(f"run '{record['id']}' accepts no events: it is {status}")
    if attempt is not None and attempt != record["attempt"]:
        raise StoreError(
            f"run '{record['id']}' takes no events from attempt {attempt}: it is at attempt {record['attempt']}"
        )


def change_of(record: RowMapping, events: Sequence[Event], moment: float) -> dict[str, Any]:
    """What new events, the last perhaps an ending, change in the run's own record."""
    progress = _progress(record)
    if record["status"] == "running" and progress.writer != record["attempt"]:
        progress = progress.model_copy(update={"attempts": progress.attempts + 1, "writer": record["attempt"]})
    for event in events:
        progress = fold(progress, event)
    change: dict[str, Any] = {"progress": progress.model_dump_json()}
    last = events[-1]
    if last.kind in ENDINGS:
        change |= {"status": last.kind, "ended": moment}
        if isinstance(last, Finished):
            change["result"] = last.model_dump_json(exclude={"kind"})
        elif not isinstance(last, Stopped):
            change["error"] = last.model_dump_json()
    return change
