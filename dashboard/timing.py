"""Estimated time of runs, from similar runs on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dashboard import resources, wording
from dashboard.run_lists import cached
from isoviz.config import RunConfig
from isoviz.demo import bundled_models, recorded_pace
from isoviz.runs.identity import host_name
from isoviz.runs.rows import RunRow
from isoviz.training import devices

HISTORY: Final = 500
"""Number of newest finished runs used for estimates."""


@dataclass(frozen=True)
class Estimate:
    """Estimated time of runs.

    Attributes:
        seconds: total seconds, one run after another.
        unknown: runs without an estimate, not included in `seconds`.
        recorded: runs estimated from the bundled timings of another machine.
        measured: earlier runs on this machine used for the estimate.
    """

    seconds: float
    unknown: int
    recorded: int = 0
    measured: int = 0

    def words(self) -> str:
        """`about 45 s`, `more than 45 s` if some runs are unknown, or `unknown`. Slots run in parallel."""
        return duration_words(self, len(devices.describe().slots))

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
    return estimate(configs, _history())


def remaining(rows: Sequence[RunRow]) -> Estimate:
    """Remaining time of running and waiting runs, only from timings on this machine."""
    running = [row for row in rows if row.status == "running"]
    seconds_left = [row.progress.eta_seconds if row.progress else None for row in running]
    starting = [row.config for row, seconds in zip(running, seconds_left, strict=True) if seconds is None]
    waiting_estimate = estimate(
        [*starting, *(row.config for row in rows if row.status == "queued")], _history(), shipped=False
    )
    return replace(
        waiting_estimate,
        seconds=waiting_estimate.seconds + sum(seconds for seconds in seconds_left if seconds is not None),
    )


def _history() -> list[RunRow]:
    return cached("history", lambda: resources.store().list(status="finished", limit=HISTORY))


def estimate(configs: Iterable[RunConfig], history: Iterable[RunRow], *, shipped: bool = True) -> Estimate:
    """Estimate from similar runs on this machine: the same setup except epochs, seed and parameters; else the same model and data
    size; else, with `shipped`, the bundled timings of the bundled model."""
    pace_of: dict[tuple[Any, ...], dict[str, float]] = {}
    similar: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in history:
        on_this_machine = row.host in (None, host_name())
        if on_this_machine and row.status == "finished" and row.started and row.ended and row.attempt == 1:
            per_epoch = (row.ended - row.started) / row.config.epochs
            pace_of.setdefault(_like(row.config), {})[row.id] = per_epoch
            if size := _similar(row.config):
                similar.setdefault(size, {})[row.id] = per_epoch
    seconds, unknown, recorded = 0.0, 0, 0
    measured: set[str] = set()
    for config in configs:
        paces = pace_of.get(_like(config)) or similar.get(_similar(config) or ())
        if paces:
            seconds += statistics.median(paces.values()) * config.epochs
            measured |= paces.keys()
        elif shipped and (pace := _recorded(config)) is not None:
            seconds += pace * config.epochs
            recorded += 1
        else:
            unknown += 1
    return Estimate(seconds, unknown, recorded, len(measured))


def _recorded(config: RunConfig) -> float | None:
    """Seconds per epoch of the bundled model on a demo task, from the bundled timings."""
    recorded = recorded_pace(config.task) if config.model in bundled_models() else None
    if recorded is None:
        return None
    per_row, rows = recorded
    return per_row * min(config.max_train or rows, rows)


def _like(config: RunConfig) -> tuple[Any, ...]:
    rows = (config.max_train, config.max_eval, config.batch_size, config.max_length, config.low_rank, config.processes)
    return (config.model, config.task, config.data, config.method, config.precision, *rows)


def _similar(config: RunConfig) -> tuple[Any, ...] | None:
    if config.max_train is None:
        return None
    return (
        config.model,
        config.precision,
        config.max_train,
        config.max_eval,
        config.max_length,
        config.low_rank,
        config.processes,
    )


def duration_words(total: Estimate, slots: int) -> str:
    """See `Estimate.words`."""
    if not total.seconds:
        return "unknown"
    text = wording.duration(total.seconds / max(1, slots))
    return f"more than {text}" if total.unknown else f"about {text}"
