"""Estimated time of runs, from similar runs on this machine."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
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
    """

    seconds: float
    unknown: int

    def words(self) -> str:
        """`about 45 s`, `more than 45 s` if some runs are unknown, or `unknown`."""
        if not self.seconds:
            return "unknown"
        text = wording.duration(self.seconds)
        return f"more than {text}" if self.unknown else f"about {text}"


def estimated(configs: Iterable[RunConfig]) -> Estimate:
    """Estimated time of these runs, from the store's newest finished runs."""
    history = cached("history", lambda: resources.store().list(status="finished", limit=HISTORY))
    return estimate(configs, history, slots=len(devices.describe().slots))


def estimate(configs: Iterable[RunConfig], history: Iterable[RunRow], *, slots: int = 1) -> Estimate:
    """Estimate from runs on this machine with the same model, kind of task and settings, by the number of rows; else from the
    bundled timings."""
    paces: dict[tuple[Any, ...], list[float]] = {}
    for row in history:
        on_this_machine = row.host in (None, host_name())
        if on_this_machine and row.status == "finished" and row.started and row.ended and row.attempt == 1:
            epochs = (row.progress and row.progress.measured_epoch) or row.config.epochs  # it may have stopped early
            pace = (row.ended - row.started) / epochs / (_rows(row.config) or 1)
            paces.setdefault(_like(row.config), []).append(pace)
    each: list[float] = []
    unknown = 0
    for config in configs:
        if similar := paces.get(_like(config)):
            seconds = statistics.median(similar) * (_rows(config) or 1)
        elif (
            config.model in demo.bundled_models()
            and config.num_beams == config.processes == 1
            and (pace_of_task := demo.recorded_pace(config.task))
        ):  # the bundled timings are of the bundled model, one process and one beam
            seconds = pace_of_task[0] * (_rows(config) or 1)
        else:
            unknown += 1
            continue
        each += [seconds * config.epochs] * config.processes
    return Estimate(max([sum(each) / slots, *each]), unknown)


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
