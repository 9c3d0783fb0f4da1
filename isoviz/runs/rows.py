"""A run as the rest of the program sees it, and what a list of runs shows of its latest events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from sqlalchemy import RowMapping

from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import ENDINGS, Status

STATUSES: tuple[str, ...] = get_args(Status)
AT_ONCE = 0.0
"""In the column `stop_requested`, which else holds when a stop was asked for: asked again."""


@dataclass(frozen=True)
class RunRow:
    """One run at one moment.

    Attributes:
        status: see `isoviz.events.Status`.
        created, queued, started, ended, heartbeat: seconds since 1970; `started` is that of the latest attempt.
        stop_requested: someone asked it to stop.
        resume: this attempt goes on from the last checkpoint.
        attempt: the token that its worker writes with; another one each time it is claimed or queued again.
        owner: who claimed it, or for whom it is reserved while queued.
        pid, pid_started: the worker process and its start time as psutil tells it.
        error: how it ended if it failed, diverged or was lost: `kind`, `message`, `advice`, … of that event.
        result: `metrics`, `isotropy`, `timing`, `collapsed` of a finished run, and its `weights` if known (`isoviz.events.Weights`).
        progress: see `fold`.
        position: place in the queue counted from 1, None if it does not wait.
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
    tags: tuple[str, ...]
    note: str
    error: dict[str, Any] | None
    result: dict[str, Any] | None
    progress: dict[str, Any] | None
    position: int | None = None

    @property
    def attempts(self) -> int:
        """How many workers have begun it."""
        # before they were counted: claimed once, then queued again and claimed for each resume
        return int((self.progress or {}).get("attempts", (self.attempt + 1) // 2))

    @property
    def collapsed(self) -> str | None:
        """Why a finished run's predictions count as constant, in words; None where they do not.

        Runs of before this was kept are known by a Matthews correlation of 0, which is that of one class throughout and of little
        else.
        """
        result = self.result or {}
        if "collapsed" in result:
            return str(result["collapsed"]) if result["collapsed"] else None
        return "predicts one class" if result.get("metrics", {}).get("matthews") == 0 else None


def row_of(data: RowMapping, position: int | None) -> RunRow:
    """The run of one record of the `runs` table."""
    return RunRow(
        id=data["id"],
        name=data["name"],
        group=data["group_name"],
        status=data["status"],
        config=RunConfig.model_validate_json(data["config"]),
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
        tags=tuple(json.loads(data["tags"])),
        note=data["note"],
        error=_loads(data["error"]),
        result=_loads(data["result"]),
        progress=_loads(data["progress"]),
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
    progress = _loads(data["progress"]) or {}
    return Signals(
        status=data["status"],
        attempt=data["attempt"],
        stop=data["stop_requested"] is not None,
        at_once=data["stop_requested"] == AT_ONCE,
        phase=progress.get("phase"),
        checkpoint_step=progress.get("checkpoint_step", 0),
        step_seconds=progress.get("step_seconds") or 0.0,
    )


def _loads(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    data: dict[str, Any] = json.loads(text)
    return data


def fold(progress: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
    """What a list of runs shows of a run, after one more event (as JSON data); the keys come with the events that tell them.

    Keys: `phase`, `detail`, `step`, `total_steps`, `epoch`, `losses`, `samples_per_second`, `eta_seconds`, `checkpoint_step`,
    `step_seconds`, `device`, `startup_seconds`, `primary`, `metrics`, `loss`, `measured_epoch`, `isoscore_star`, `isoscore` (of `head`).
    """
    now = dict(progress)

    def take(*names: str) -> None:
        now.update((name, event[name]) for name in names)

    match event["kind"]:
        case "entered":
            take("phase", "detail")
        case "started":
            take("device", "total_steps", "startup_seconds")
            now |= {"phase": "training", "detail": "", "step": event["first_step"]}
        case "resumed":
            take("step", "epoch")
            now |= {"checkpoint_step": event["step"]}
        case "stepped":
            take("step", "epoch", "losses", "samples_per_second", "eta_seconds")
            now |= {
                "phase": "training",
                "detail": "",
                "step_seconds": event.get("step_seconds") or now.get("step_seconds"),
            }
        case "evaluated":
            take("primary", "metrics", "loss")
        case "measured":
            take("isoscore_star")
            head = event["clouds"].get("head")
            now |= {"measured_epoch": event["epoch"], "isoscore": head["isoscore"] if head else None}
        case "checkpointed":
            now |= {"checkpoint_step": event["step"]}
    return now


def check_writer(record: RowMapping, attempt: int | None, *, ending: bool) -> None:
    """Only a running run is written to, by its current attempt; a waiting one can only be ended."""
    status = record["status"]
    if status in ENDINGS or (status == "queued" and not ending):
        raise StoreError(f"run '{record['id']}' takes no events: it is {status}")
    if attempt is not None and attempt != record["attempt"]:
        raise StoreError(
            f"run '{record['id']}' takes no events from attempt {attempt}: it is at attempt {record['attempt']}"
        )


def change_of(record: RowMapping, events: Sequence[Mapping[str, Any]], moment: float) -> dict[str, Any]:
    """What new events, the last perhaps an ending, change in the run's own record."""
    progress = json.loads(record["progress"] or "{}")
    if record["status"] == "running" and progress.get("writer") != record["attempt"]:
        begun = progress.get("attempts", record["attempt"] // 2 if progress else 0)
        progress |= {"attempts": begun + 1, "writer": record["attempt"]}
    for event in events:
        progress = fold(progress, event)
    change: dict[str, Any] = {"progress": json.dumps(progress)}
    last = events[-1]
    if last["kind"] in ENDINGS:
        change |= {"status": last["kind"], "ended": moment}
        if last["kind"] == "finished":
            optional = [part for part in ("weights",) if last.get(part)]
            parts = ("metrics", "isotropy", "timing", "collapsed", *optional)
            change["result"] = json.dumps({part: last.get(part) for part in parts})
        elif last["kind"] != "stopped":
            change["error"] = json.dumps(last)
    return change
