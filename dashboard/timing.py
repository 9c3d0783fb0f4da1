"""How long runs will take, estimated from similar runs on this machine."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard import resources, wording
from dashboard.run_lists import cached
from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.demo import bundled_models, recorded_pace
from isoviz.runs.identity import host_name
from isoviz.runs.rows import RunRow
from isoviz.training import devices

HISTORY: Final = 500
"""Newest finished runs that the time is estimated from."""


@dataclass(frozen=True)
class Estimate:
    """How long runs will take.

    Attributes:
        seconds: until the last one ends, with every slot of this machine at work.
        unknown: runs that nothing is known about; `seconds` leaves them out.
        recorded: runs judged by the recording that ships with the demo tasks, made on another machine.
        measured: earlier runs on this machine that the others are judged by.
    """

    seconds: float
    unknown: int
    recorded: int = 0
    measured: int = 0

    def words(self) -> str:
        """`about 45 s`, `more than 45 s` where some runs are unknown, or `unknown`."""
        if not self.seconds:
            return "unknown"
        text = wording.duration(self.seconds)
        return f"more than {text}" if self.unknown else f"about {text}"

    def source(self, count: int) -> str:
        """What the time of `count` runs is estimated from."""
        if self.unknown == count:
            return "no timing on this machine yet"
        if self.recorded:
            return "estimated from another machine; improves after your first run"
        if self.unknown:
            return f"no timing on this machine yet for {self.unknown} of {count} runs"
        return f"estimated from {self.measured} earlier run{'s' if self.measured != 1 else ''} on this machine"


def estimated(configs: Iterable[RunConfig]) -> Estimate:
    """How long these will take, by the store's newest finished runs."""
    return estimate(configs, _history(), slots=len(devices.describe().slots))


def remaining(rows: Sequence[RunRow]) -> Estimate:
    """How long runs that run and wait will take from now, by what was measured on this machine alone."""
    running = [row for row in rows if row.status == "running"]
    left = [row.progress.eta_seconds if row.progress else None for row in running]
    slots = len(devices.describe().slots)
    busy = [
        max(0.0, seconds)
        for row, seconds in zip(running, left, strict=True)
        if seconds is not None
        for _ in range(min(row.config.processes, slots))
    ]
    starting = [row.config for row, seconds in zip(running, left, strict=True) if seconds is None]
    waiting = [row.config for row in rows if row.status == "queued"]
    return estimate([*starting, *waiting], _history(), shipped=False, slots=slots, busy=busy)


def _history() -> list[RunRow]:
    return cached("history", lambda: resources.store().list(status="finished", limit=HISTORY))


def estimate(
    wanted: Iterable[RunConfig],
    history: Iterable[RunRow],
    *,
    shipped: bool = True,
    slots: int = 1,
    busy: Sequence[float] = (),
) -> Estimate:
    """From similar runs on this machine: same setup but epochs, seed and parameters; else same model, kind of task and amount of
    work; else, with `shipped`, from the recording that ships with the bundled model.

    Args:
        wanted: in the order in which they start; each takes the slots that are free first.
        slots: of this machine.
        busy: seconds until each of the slots that work now is free.
    """
    like: dict[tuple[Any, ...], dict[str, float]] = {}
    similar: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in history:
        here = row.host in (None, host_name())
        if here and row.status == "finished" and row.started and row.ended and row.attempt == 1:
            epochs = (row.progress and row.progress.measured_epoch) or row.config.epochs  # it may have stopped early
            per_epoch = (row.ended - row.started) / epochs
            like.setdefault(_like(row.config), {})[row.id] = per_epoch
            if size := _similar(row.config):
                similar.setdefault(size, {})[row.id] = per_epoch
    ends = [*busy, *(0.0 for _ in range(slots - len(busy)))]
    heapq.heapify(ends)
    unknown, recorded = 0, 0
    measured: set[str] = set()
    for config in wanted:
        paces = like.get(_like(config)) or similar.get(_similar(config) or ())
        if paces:
            pace: float | None = statistics.median(paces.values())
            measured |= paces.keys()
        else:
            pace = _recorded(config) if shipped else None
            recorded += pace is not None
        if pace is None:
            unknown += 1
            continue
        own = [heapq.heappop(ends) for _ in range(min(config.processes, len(ends)))]
        for _ in own:
            heapq.heappush(ends, max(own) + pace * config.epochs)
    return Estimate(max(ends), unknown, recorded, len(measured))


def _recorded(config: RunConfig) -> float | None:
    """Seconds per epoch of the bundled model on a demo task, by the recording that ships with them."""
    recorded = recorded_pace(config.task) if config.model in bundled_models() else None
    if recorded is None:
        return None
    per_row, rows = recorded
    return per_row * min(config.max_train or rows, rows)


def _like(config: RunConfig) -> tuple[Any, ...]:
    return (config.task, config.data, config.own, config.method, config.max_train, *_work(config))


def _similar(config: RunConfig) -> tuple[Any, ...] | None:
    return None if config.max_train is None else (_kind(config), config.max_train, *_work(config))


def _work(config: RunConfig) -> tuple[Any, ...]:
    """Settings that a run's time depends on, whatever its task."""
    return (
        config.model,
        config.low_rank,
        config.precision,
        config.threads,
        config.processes,
        config.batch_size,
        config.grad_accum,
        config.max_length,
        config.max_eval,
        config.num_beams,
    )


def _kind(config: RunConfig) -> str | None:
    if config.own is not None:
        return config.own.kind
    task = tasks.catalogue().get(config.task)
    return None if task is None else task.kind
