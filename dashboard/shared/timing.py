"""Estimated time of runs, from similar runs on this machine."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.shared import resources, wording
from dashboard.shared.run_lists import cached
from isoviz import demo, devices, tasks
from isoviz.config import RunConfig
from isoviz.runs.identity import host_name
from isoviz.runs.rows import RunRow

HISTORY: Final = 500
"""Number of newest finished runs used for estimates."""


@dataclass(frozen=True)
class Estimate:
    """Estimated time of runs.

    Attributes:
        seconds: until the last run ends, with every slot of this machine at work.
        unknown: runs without an estimate, not included in `seconds`.
        recorded: runs estimated from the bundled timings of another machine.
        measured: earlier runs on this machine used for the estimate.
    """

    seconds: float
    unknown: int
    recorded: int = 0
    measured: int = 0

    def words(self) -> str:
        """`about 45 s`, `more than 45 s` if some runs are unknown, or `unknown`."""
        if not self.seconds:
            return "unknown"
        text = wording.duration(self.seconds)
        return f"more than {text}" if self.unknown else f"about {text}"

    def source(self, count: int) -> str:
        """The basis of the estimate for `count` runs."""
        if self.unknown == count:
            return "no timing on this machine yet"
        if self.recorded:
            return "estimated from another machine; improves after your first run"
        if self.unknown:
            return f"no timing on this machine yet for {self.unknown} of {count} runs"
        return f"estimated from {self.measured} earlier run{'s' if self.measured != 1 else ''} on this machine"


def estimated(configs: Iterable[RunConfig]) -> Estimate:
    """Estimated time of these runs, from the store's newest finished runs."""
    return estimate(configs, _history(), slots=len(devices.describe().slots))


def remaining(rows: Sequence[RunRow]) -> Estimate:
    """Remaining time of running and waiting runs, only from timings on this machine."""
    running = [row for row in rows if row.status == "running"]
    seconds_left = [row.progress.eta_seconds if row.progress else None for row in running]
    slots = len(devices.describe().slots)
    busy = [
        max(0.0, seconds)
        for row, seconds in zip(running, seconds_left, strict=True)
        if seconds is not None
        for _ in range(min(row.config.processes, slots))
    ]
    starting = [row.config for row, seconds in zip(running, seconds_left, strict=True) if seconds is None]
    waiting = [row.config for row in rows if row.status == "queued"]
    return estimate([*starting, *waiting], _history(), shipped=False, slots=slots, busy=busy)


def _history() -> list[RunRow]:
    return cached("history", lambda: resources.store().list(status="finished", limit=HISTORY))


def estimate(
    configs: Iterable[RunConfig],
    history: Iterable[RunRow],
    *,
    shipped: bool = True,
    slots: int = 1,
    busy: Sequence[float] = (),
) -> Estimate:
    """Estimate from similar runs on this machine: the same setup except epochs, seed and parameters; else the same model, kind of task
    and settings, by the number of rows; else the bundled timings of the bundled model, scaled by how long its runs took here. Before
    its first run here they are used unscaled, with `shipped`.

    Args:
        configs: in the order in which they start; each takes the slots that are free first.
        slots: of this machine.
        busy: seconds until each of the slots that work now is free.
    """
    pace_of: dict[tuple[Any, ...], dict[str, float]] = {}
    per_row: dict[tuple[Any, ...], dict[str, float]] = {}
    to_recorded: dict[str, float] = {}
    for row in history:
        on_this_machine = row.host in (None, host_name())
        if on_this_machine and row.status == "finished" and row.started and row.ended and row.attempt == 1:
            epochs = (row.progress and row.progress.measured_epoch) or row.config.epochs  # it may have stopped early
            per_epoch = (row.ended - row.started) / epochs
            pace_of.setdefault(_like(row.config), {})[row.id] = per_epoch
            if rows := _rows(row.config):
                per_row.setdefault(_similar(row.config), {})[row.id] = per_epoch / rows
            if recorded_pace := _recorded(row.config):
                to_recorded[row.id] = per_epoch / recorded_pace
    ends = [*busy, *(0.0 for _ in range(slots - len(busy)))]
    heapq.heapify(ends)
    unknown, recorded = 0, 0
    measured: set[str] = set()
    for config in configs:
        pace: float | None
        rows, shipped_pace = _rows(config), _recorded(config)
        if paces := pace_of.get(_like(config)):
            pace = statistics.median(paces.values())
        elif rows and (paces := per_row.get(_similar(config))):
            pace = rows * statistics.median(paces.values())
        elif shipped_pace and (paces := to_recorded):
            pace = shipped_pace * statistics.median(paces.values())
        else:
            pace, paces = (shipped_pace if shipped else None), {}
            recorded += pace is not None
        measured |= paces.keys()
        if pace is None:
            unknown += 1
            continue
        starts = [heapq.heappop(ends) for _ in range(min(config.processes, len(ends)))]
        for _ in starts:
            heapq.heappush(ends, max(starts) + pace * config.epochs)
    return Estimate(max(ends), unknown, recorded, len(measured))


def _recorded(config: RunConfig) -> float | None:
    """Seconds per epoch of the bundled model on a demo task, from the bundled timings; they are of one process and one beam."""
    recorded = demo.recorded_pace(config.task) if config.model in demo.bundled_models() else None
    if recorded is None or config.num_beams > 1 or config.processes > 1:
        return None
    per_row, _ = recorded
    return per_row * (_rows(config) or 0)


def _like(config: RunConfig) -> tuple[Any, ...]:
    return (config.task, config.data, config.own, config.method, config.max_train, *_work(config))


def _similar(config: RunConfig) -> tuple[Any, ...]:
    return (_kind(config), *_work(config))


def _rows(config: RunConfig) -> int | None:
    """Training rows; None if only the files know."""
    recorded = demo.recorded_pace(config.task)
    return config.max_train if recorded is None else min(config.max_train or recorded[1], recorded[1])


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
