"""Planned and existing runs behind a table or figure, and judgements on them. Nothing here reads a store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isoviz import tasks
from isoviz.comparisons import compare, wording
from isoviz.comparisons.table import Part
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.runs.naming import method_title, variant
from isoviz.statistics import correction, intervals, mean_sd, two_samples
from isoviz.statistics.rank_correlation import rank_correlation
from isoviz.studies.protocol import Judgement
from isoviz.studies.records import Cell, RunRecord

RUNNING: Final = ("queued", "running")
MAJORITY: Final = 0.5
ALPHA: Final = 0.05


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

    # ------------------------------------------------------------------ judgements

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

    def parts(self, metric: str | None = None) -> list[Part]:
        """All methods (with parameters) against the baseline, paired by seed, one part per model and task.

        With Holm's correction over all of them; empty with nothing to compare yet.
        """
        rows = [run.row for run in self.finished]
        started = {run.row.id: run.started for run in self.finished}
        try:
            table = compare(rows, metric=metric, started=started)
        except InputError:  # nothing to compare yet
            return []
        return table.parts


@dataclass(frozen=True)
class Difference:
    """One setting minus another, over common seeds.

    Attributes:
        mean: mean difference; None without a common seed.
        low, high: its 95 % interval; None below two seeds.
        p: p-value of the paired t-test; nan below three seeds, and without spread.
        n: common seeds.
    """

    mean: float | None
    low: float | None
    high: float | None
    p: float
    n: int

    @classmethod
    def of(cls, first: Mapping[int, float], second: Mapping[int, float]) -> Difference:
        """The difference of two mappings from seed to value."""
        differences = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
        mean, _ = mean_sd(differences)
        ends = intervals.of_mean(differences)
        p = float(two_samples.paired_t(differences)) if len(differences) >= wording.ENOUGH else math.nan
        return cls(mean, ends.low if ends else None, ends.high if ends else None, p, len(differences))

    def sign(self, p: float | None = None) -> int:
        """1 or −1 if the difference is significant (p < 0.05, optionally a corrected p), else 0."""
        used = self.p if p is None else p
        return int(math.copysign(1, self.mean)) if self.mean is not None and used < ALPHA else 0

    def words(self) -> str:
        """`+0.012 [−0.003, 0.027], 3 seeds`."""
        if self.mean is None:
            return "no common seed"
        ends = "" if self.low is None or self.high is None else f" [{number(self.low)}, {number(self.high)}]"
        return f"{wording.number(self.mean, sign=True)}{ends}, {self.n} {'seed' if self.n == 1 else 'seeds'}"


def against_baseline(
    evidence: Evidence, metric: str, methods: Sequence[str], baseline: str = "baseline"
) -> list[tuple[str, Difference]]:
    """`method on task` → its difference from the baseline of the same model and task; collapsed runs count in isotropy."""
    changes = []
    for model in evidence.models:
        for task in evidence.tasks:
            subset = evidence.where(model=model, task=task)
            baseline_values = subset.where(method=baseline).cell(metric).values
            for method in methods:
                part = subset.where(method=method)
                if part.planned:
                    name = f"{method_title(method)} on {task_title(task)}"
                    changes.append((name, Difference.of(part.cell(metric).values, baseline_values)))
    return changes


def corrected(changes: Sequence[Difference]) -> list[float]:
    """p-values after Holm's correction, in order; nan without a test."""
    return [float(p) for p in correction.holm([change.p for change in changes])] if changes else []


def _field(config: RunConfig, name: str) -> Any:
    return getattr(config, name) if name in RunConfig.model_fields else config.params.get(name)


def task_title(slug: str) -> str:
    """A task's title without "(demo)", which every caption of a quick study would repeat."""
    task = tasks.catalogue().get(slug)
    return task.title.removesuffix(" (demo)") if task else slug


def label(config: RunConfig) -> str:
    """`I-STAR λ = −1`."""
    return " ".join(filter(None, [method_title(config.method), variant(config.method, config.params)]))


# ---------------------------------------------------------------------------------------------------- judgements


def number(value: float) -> str:
    """Three decimals with a true minus sign."""
    return wording.number(value)


def never_consistently_better(changes: Mapping[str, Sequence[tuple[str, Difference]]]) -> Judgement:
    """Is no method better than the baseline on most tasks? A claim of absence: held unless some method is significantly better on most.

    Args:
        changes: method → differences from the baseline by name; corrected over all of them.
    """
    pairs = [pair for of_method in changes.values() for pair in of_method]
    if not any(change.n >= wording.ENOUGH for _, change in pairs):
        return "cannot tell", "Fewer than three seeds of each method have a score."
    adjusted = iter(corrected([change for _, change in pairs]))
    signs = {method: [change.sign(next(adjusted)) for _, change in of_method] for method, of_method in changes.items()}
    better = {method: sum(sign > 0 for sign in of_method) for method, of_method in signs.items()}
    worse = sum(sign < 0 for of_method in signs.values() for sign in of_method)
    consistent = [method for method, count in better.items() if count > MAJORITY * len(signs[method])]
    defined = [(change.mean, name, change) for name, change in pairs if change.mean is not None]
    ends = "; ".join(
        f"{rank} {name}: {change.words()}"
        for rank, (_, name, change) in (("highest", max(defined)), ("lowest", min(defined)))
    )
    sentence = (
        f"{sum(better.values())} of {len(pairs)} comparisons with the baseline are higher beyond chance and {worse} lower (paired by "
        f"seed, after Holm's correction); {ends}."
    )
    if consistent:
        return "not held", f"Better on most tasks: {', '.join(consistent)}. {sentence}"
    return "held", sentence


def goes_with(x: Sequence[float], y: Sequence[float], names: Iterable[str], pair: str, direction: int) -> Judgement:
    """Do two numbers, averaged over seeds, rise together (direction 1) or against each other (−1) within tasks?

    Held or not held, by the sign, if the permutation test gives p < 0.05; otherwise "cannot tell".
    """
    points = [(a, b, name) for a, b, name in zip(x, y, names, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if not points:
        return "cannot tell", "No setting has finished."
    correlation = rank_correlation(
        [a for a, _, _ in points], [b for _, b, _ in points], [name for _, _, name in points]
    )
    if correlation.estimate is None or correlation.p is None:
        return "cannot tell", f"{len(points)} settings have finished; a rank correlation needs four of a task."
    ends = f" [{number(correlation.interval.low)}, {number(correlation.interval.high)}]" if correlation.interval else ""
    sentence = (
        f"Spearman's ρ {pair} is {number(correlation.estimate)}{ends} over {correlation.points} settings of "
        f"{correlation.tasks} {'task' if correlation.tasks == 1 else 'tasks'}, within tasks (p = {wording.probability(correlation.p)})."
    ).replace("= <", "<")
    if correlation.p >= 0.05:
        return "cannot tell", sentence
    return ("held" if direction * correlation.estimate > 0 else "not held"), sentence
