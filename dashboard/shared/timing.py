"""Estimated time of runs, from similar runs on this machine."""

from __future__ import annotations

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
    busy: list[float] = []
    configs = [row.config for row in rows if row.status == "queued"]
    for row in rows:
        if row.status == "running":
            seconds = row.progress.eta_seconds if row.progress else None
            if seconds is None:
                configs.append(row.config)
            else:
                busy += [max(0.0, seconds)] * row.config.processes
    return estimate(configs, _history(), shipped=False, slots=len(devices.describe().slots), busy=busy)


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
    """Estimate from runs on this machine with the same model, kind of task and settings, by the number of rows; else, with
    `shipped`, from the bundled timings.

    Args:
        slots: of this machine.
        busy: seconds that each run which works now still needs.
    """
    paces: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in history:
        on_this_machine = row.host in (None, host_name())
        if on_this_machine and row.status == "finished" and row.started and row.ended and row.attempt == 1:
            epochs = (row.progress and row.progress.measured_epoch) or row.config.epochs  # it may have stopped early
            pace = (row.ended - row.started) / epochs / (_rows(row.config) or 1)
            paces.setdefault(_like(row.config), {})[row.id] = pace
    each, unknown, recorded = list(busy), 0, 0
    measured: set[str] = set()
    for config in configs:
        if similar := paces.get(_like(config), {}):
            seconds = statistics.median(similar.values()) * (_rows(config) or 1)
        elif (
            shipped
            and config.model in demo.bundled_models()
            and config.num_beams == config.processes == 1
            and (pace_of_task := demo.recorded_pace(config.task))
        ):  # the bundled timings are of the bundled model, one process and one beam
            seconds = pace_of_task[0] * (_rows(config) or 1)
            recorded += 1
        else:
            unknown += 1
            continue
        measured |= similar.keys()
        each += [seconds * config.epochs] * config.processes
    return Estimate(max([sum(each) / slots, *each]), unknown, recorded, len(measured))


def _rows(config: RunConfig) -> int | None:
    """Training rows; None if only the files know."""
    recorded = demo.recorded_pace(config.task)
    return config.max_train if recorded is None else min(config.max_train or recorded[1], recorded[1])


def _like(config: RunConfig) -> tuple[Any, ...]:
    """What the time per row depends on; if only the files know the rows, these files too."""
    task = config.own or tasks.catalogue().get(config.task)
    return (
        task and task.kind,
        None if _rows(config) else (config.task, config.data, config.own),
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
