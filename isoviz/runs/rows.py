"""A run as the rest of the program sees it, and what a list of runs shows of its latest events."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import RowMapping

from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import (
    ENDINGS,
    Checkpointed,
    Entered,
    Evaluated,
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
AT_ONCE = 0.0
"""In the column `stop_requested`, which else holds the time of the request: stop was requested again."""
RETURN = -1.0
"""In the same column: the worker of the run asks for it, to put it back into the queue."""


@dataclass(frozen=True)
class RunRow:
    """One run at one moment.

    Attributes:
        status: see `isoviz.events.Status`.
        created, queued, started, ended, heartbeat: seconds since 1970; `started` is that of the latest attempt.
            Reordering the queue changes `queued`.
        stop_requested: someone asked it to stop.
        resume: this attempt goes on from the last checkpoint.
        attempt: the token that its worker writes with; another one each time it is claimed or queued again.
        owner: who claimed it, or for whom it is reserved while queued.
        visitor: who launched it in the browser; None for the operator and the command line.
        pid, pid_started: the worker process and its start time as psutil tells it.
        pid_scope: where `pid` counts (`isoviz.runs.identity.pid_scope`); None: an earlier version wrote it.
        error: how it ended if it failed, diverged or was lost: `kind`, `message`, `advice`, … of that event.
        result: what a finished run reported at its end.
        position: place in the queue counted from 1, None if it does not wait.
        priority: waiting runs with a higher one are taken first (`isoviz.runs.queue_order.PRIORITIES`).
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
    priority: int = 0

    @property
    def attempts(self) -> int:
        """How many workers have begun it."""
        # before they were counted: claimed once, then queued again and claimed for each resume
        if self.progress is None or self.progress.attempts is None:
            return (self.attempt + 1) // 2
        return self.progress.attempts

    @property
    def collapsed(self) -> str | None:
        """Why a finished run's predictions are constant or no better than chance, in words; None where they are neither."""
        return None if self.result is None else collapse_of(self.result)


def collapse_of(result: Finished) -> str | None:
    """Why a run's predictions are constant or no better than chance, in words; None where they are neither.

    Old runs did not record constant predictions: a Matthews correlation of 0 means one class throughout.
    """
    if "collapsed" not in result.model_fields_set:
        return "predicts one class" if result.metrics.get("matthews") == 0 else None
    head = result.isotropy.cloud("head")
    return result.collapsed or chance_of(result.metrics, head.n if head else 0) or None


def chance_of(metrics: Mapping[str, float | None], rows: float) -> str:
    """That a finished run did no better than chance, in words, by its recorded metrics; "" where it did better.

    Runs recorded before this was judged with the predictions at hand are judged here. A Matthews correlation of exactly 0 does not
    count: where predictions vary, it is that of a validation split with one class.

    Args:
        rows: validation rows, as many as are known of.
    """
    found = next((metrics[name] for name in CORRELATIONS.values() if metrics.get(name)), None)
    return AT_CHANCE if at_chance(found, int(rows)) else ""


class UnreadableRunError(StoreError):
    """What the store holds of a run cannot be read: damaged, or written by a newer version.

    Attributes:
        run: its id.
        why: what cannot be read, for a person.
    """

    def __init__(self, run: str, why: str) -> None:
        super().__init__(
            f"run '{run}' is unreadable: {why}",
            field="id",
            advice="Update IsoViz if a newer version wrote it. Otherwise its record is damaged: delete the run.",
        )
        self.run = run
        self.why = why


@contextmanager
def _reading(run: str, what: str) -> Iterator[None]:
    try:
        yield
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:  # pydantic's and json's errors are ValueErrors
        raise UnreadableRunError(run, f"its {what} is not valid ({_first_fault(error)})") from error


def _first_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors(include_input=False, include_context=False)[0]
        place = ".".join(map(str, fault["loc"]))
        text = f"{place}: {fault['msg']}" if place else fault["msg"]
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())[:120]


def row_of(data: RowMapping, position: int | None) -> RunRow:
    """The run of one record of the `runs` table. Raises `UnreadableRunError`."""
    run = data["id"]
    with _reading(run, "configuration"):
        config = RunConfig.model_validate_json(data["config"])
    with _reading(run, "list of tags"):
        tags = tuple(map(str, json.loads(data["tags"])))
    with _reading(run, "error"):
        error = None if data["error"] is None else dict(json.loads(data["error"]))
    with _reading(run, "result"):
        result = None if data["result"] is None else _result(data["result"])
    with _reading(run, "progress"):
        progress = None if data["progress"] is None else RunProgress.model_validate_json(data["progress"])
    return RunRow(
        id=data["id"],
        name=data["name"],
        group=data["group_name"],
        status=data["status"],
        config=config,
        created=data["created"],
        queued=data["queued"],
        started=data["started"],
        ended=data["ended"],
        heartbeat=data["heartbeat"],
        stop_requested=data["stop_requested"] is not None,
        resume=bool(data["resume"]),
        attempt=data["attempt"],
        owner=data["owner"],
        host=data["host"],
        device=data["device"],
        pid=data["pid"],
        pid_started=data["pid_started"],
        pid_scope=data["pid_scope"],
        visitor=data["visitor"],
        tags=tags,
        note=data["note"],
        error=error,
        priority=data["priority"],
        result=result,
        progress=progress,
        position=position,
    )


@dataclass(frozen=True)
class Signals:
    """What a runner and a worker watch of a running run: its status, its attempt, whether it shall stop, what it is doing.

    Attributes:
        stop: it was asked to stop; `at_once`: more than once, so that nothing is waited for.
        phase: see `isoviz.events.Entered`.
        checkpoint_step: the optimiser step of its last checkpoint.
        step_seconds: how long an optimiser step takes, as measured; 0 where no step was reported yet.
    """

    status: str
    attempt: int
    stop: bool
    at_once: bool
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
        at_once=data["stop_requested"] == AT_ONCE,
        phase=progress.phase or None,
        checkpoint_step=progress.checkpoint_step,
        step_seconds=progress.step_seconds or 0.0,
    )


@functools.lru_cache(maxsize=4096)
def _result(text: str) -> Finished:
    """A page lists all runs at every rerun, and a result never changes."""
    return Finished.model_validate_json(text)


class RunProgress(BaseModel):
    """What a list of runs shows of a run's latest events; `isoscore` is that of `head`."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="null")

    phase: str = ""
    detail: str = ""
    step: int = 0
    total_steps: int | None = None
    epoch: float = 0.0
    losses: dict[str, Number] = Field(default_factory=dict)
    samples_per_second: Number | None = None
    eta_seconds: Number | None = None
    step_seconds: float | None = None
    checkpoint_step: int = 0
    device: str = ""
    startup_seconds: float | None = None
    primary: str = ""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    loss: Number | None = None
    measured_epoch: int | None = None
    isoscore: float | None = None
    isoscore_star: float | None = None
    attempts: int | None = None
    writer: int | None = None
    warnings: tuple[str, ...] = ()


def _progress(record: RowMapping) -> RunProgress:
    """The progress so far; of an unreadable one nothing, so that its run can still be watched, stopped and ended."""
    try:
        return RunProgress.model_validate_json(record["progress"] or "{}")
    except ValueError:
        return RunProgress()


def fold(progress: RunProgress, event: Event) -> RunProgress:
    """The progress of a run after one more event."""

    def taken(*names: str, **more: Any) -> RunProgress:
        return progress.model_copy(update={**{name: getattr(event, name) for name in names}, **more})

    match event:
        case Entered():
            return taken("phase", "detail")
        case Started():
            return taken("device", "total_steps", "startup_seconds", phase="training", detail="", step=event.first_step)
        case Resumed():
            warnings = dict.fromkeys([*progress.warnings, *filter(None, [event.warning])])
            return taken("step", "epoch", checkpoint_step=event.step, warnings=tuple(warnings))
        case Stepped():
            names = ("step", "epoch", "losses", "samples_per_second", "eta_seconds")
            seconds = event.step_seconds or progress.step_seconds
            return taken(*names, phase="training", detail="", step_seconds=seconds)
        case Evaluated():
            return taken("primary", "metrics", "loss")
        case Measured():
            scores = {slug: event.isotropy.number(slug) for slug in ("isoscore", "isoscore_star")}
            return taken(measured_epoch=event.epoch, **scores)
        case Checkpointed():
            return taken("step", checkpoint_step=event.step)  # not every step before it was reported
    return progress


def check_writer(record: RowMapping, attempt: int | None, *, ending: bool) -> None:
    """Only a running run is written to, by its current attempt; a waiting one can only be ended."""
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
        known = record["attempt"] // 2 if record["progress"] else 0
        begun = known if progress.attempts is None else progress.attempts
        progress = progress.model_copy(update={"attempts": begun + 1, "writer": record["attempt"]})
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
