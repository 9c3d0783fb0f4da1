"""Planned and existing runs behind a table or figure. Nothing here reads a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.studies.records import Cell, RunRecord

RUNNING: Final = ("queued", "running")


@dataclass(frozen=True)
class Evidence:
    """Planned runs, and records of those that exist.

    Attributes:
        planned: the runs as the study declares them.
        runs: records, at most one per planned run; a study draws the existing ones.
    """

    planned: tuple[RunConfig, ...]
    runs: tuple[RunRecord, ...]

    def where(self, test: Callable[[RunConfig], bool] | None = None, **fields: Any) -> Evidence:
        """The subset whose configurations have these fields or method parameters, and pass the test."""

        def chosen(config: RunConfig) -> bool:
            matches = all(_field(config, name) == value for name, value in fields.items())
            return matches and (test is None or test(config))

        return Evidence(
            tuple(config for config in self.planned if chosen(config)),
            tuple(run for run in self.runs if chosen(run.config)),
        )

    def distinct(self, name: str) -> list[Any]:
        """The planned values of a field or parameter, in order, without runs whose method lacks the parameter."""
        return [value for value in dict.fromkeys(_field(config, name) for config in self.planned) if value is not None]

    @property
    def tasks(self) -> list[str]:
        return self.distinct("task")

    @property
    def models(self) -> list[str]:
        return self.distinct("model")

    @property
    def finished(self) -> list[RunRecord]:
        return [run for run in self.runs if run.finished]

    @property
    def unfinished(self) -> int:
        """Number of planned runs that have not ended."""
        return len(self.planned) - sum(run.row.status not in RUNNING for run in self.runs)

    def cell(self, metric: str) -> Cell:
        """A metric over all runs of this evidence, by seed."""
        values, excluded = {}, []
        for run in self.runs:
            value = run.number(metric)
            if run.row.status in RUNNING:
                continue
            if (reason := run.why_without(metric)) or value is None:
                excluded.append(f"seed {run.seed}: {reason}")
            else:
                values[run.seed] = value
        return Cell(values, len(self.planned), tuple(excluded))

    def ends(self, metric: str) -> tuple[float, float, float] | None:
        """Mean, and mean ∓ standard deviation; None without a value. One value has no spread: both ends are the mean."""
        cell = self.cell(metric)
        if cell.mean is None:
            return None
        sd = cell.sd or 0.0
        return cell.mean, cell.mean - sd, cell.mean + sd

    def learned(self) -> bool | None:
        """Whether the baseline beats the best simple approach (such as bag of words) in every seed; without baseline runs, whether
        any run does. None without simple approaches."""
        baseline = self.where(method="baseline")
        answers = []
        for run in (baseline if baseline.planned else self).finished:
            levels = [value for value in (run.started.baselines if run.started else {}).values() if value is not None]
            value = run.number(run.primary)
            if levels and value is not None:
                answers.append(value > max(levels))
        if not answers:
            return None
        return all(answers) if baseline.planned else any(answers)

    def unlearned(self) -> list[str]:
        """Tasks on which `learned` is False."""
        return [task for task in self.tasks if self.where(task=task).learned() is False]


def _field(config: RunConfig, name: str) -> Any:
    return getattr(config, name) if name in RunConfig.model_fields else config.params.get(name)


def task_title(slug: str) -> str:
    """A task's title without "(demo)", which every caption of a quick study would repeat."""
    task = tasks.catalogue().get(slug)
    return task.title.removesuffix(" (demo)") if task else slug
