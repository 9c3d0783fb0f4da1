"""Judges: what the numbers of a study say of a claim. Each returns held, not held or cannot tell, and the numbers in a sentence.

"Cannot tell" is the answer unless something was shown. A claim that nothing changes is held only if the whole interval of every
change lies within a margin taken from the paper's own printed spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.runs.comparisons import wording
from isoviz.runs.naming import method_title
from isoviz.statistics import intervals, mean_sd, power, two_samples
from isoviz.statistics.rank_correlation import rank_correlation
from isoviz.studies import published
from isoviz.studies.records import Evidence, task_title
from isoviz.studies.result import Outcome

Judgement: TypeAlias = tuple[Outcome, str]
"""An outcome, and one sentence with its numbers."""
ALPHA: Final = 0.05
SPECTRUM: Final = ("spectrum_pol", "spectrum_exp")
TOO_FEW: Final[Judgement] = ("cannot tell", "Fewer than three seeds of each setting have a score.")
OF_SPREAD: Final = "twice the median standard deviation that the paper prints without a method"


@dataclass(frozen=True)
class Change:
    """One setting minus another, over common seeds.

    Attributes:
        name: of the comparison.
        values: a difference per common seed.
        margin: the largest difference that counts as none; 0 where the paper prints no spread.
    """

    name: str
    values: tuple[float, ...]
    margin: float = 0.0

    @classmethod
    def of(cls, name: str, first: Mapping[int, float], second: Mapping[int, float], margin: float = 0.0) -> Change:
        """The difference of two mappings from seed to value."""
        return cls(name, tuple(first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())), margin)

    @property
    def mean(self) -> float:
        """nan without a common seed."""
        mean = mean_sd(self.values)[0]
        return math.nan if mean is None else mean

    @property
    def tested(self) -> bool:
        """Whether there are enough common seeds for a test."""
        return len(self.values) >= wording.ENOUGH

    @property
    def ends(self) -> tuple[float, float]:
        """The 95 % interval; all numbers below two seeds."""
        interval = intervals.of_mean(self.values)
        return (interval.low, interval.high) if interval else (-math.inf, math.inf)

    def p(self, beyond: float = 0.0) -> float:
        """p-value of the paired t-test that the true difference is at most `beyond` in size; nan below three seeds or without spread."""
        shift = math.copysign(min(beyond, abs(self.mean)), self.mean) if self.tested else 0.0
        return float(two_samples.paired_t([value - shift for value in self.values])) if self.tested else math.nan

    def words(self) -> str:
        """`IsoBN on SST-2 +0.012 [−0.003, 0.027], 3 seeds`."""
        if not self.values:
            return f"{self.name} no common seed"
        count = len(self.values)
        ends = wording.interval(self.ends if count > 1 else None)
        return f"{self.name} {wording.number(self.mean, sign=True)}{ends}, {count} {'seed' if count == 1 else 'seeds'}"


# ---------------------------------------------------------------------------------------------------- changes

Part = Callable[[Evidence, str], Evidence | None]
"""Chooses runs among those of one model and task; the second argument is the metric."""


def primary(task: str) -> str:
    """The metric by which runs on the task are compared."""
    return tasks.get(task).primary


def runs(*best_of: str, test: Callable[[RunConfig], bool] | None = None, **fields: Any) -> Part:
    """The runs with these fields or method parameters that pass the test, at the best setting of some parameters."""

    def part(evidence: Evidence, metric: str) -> Evidence | None:
        chosen = evidence.where(test, **fields)
        return chosen.best(metric, *best_of) if best_of else chosen

    return part


def changes(
    evidence: Evidence,
    first: Part,
    second: Part,
    metric: str | Callable[[str], str] = primary,
    *,
    name: str = "",
    printed_in: tuple[str, str] | None = None,
    values: Callable[[Evidence, str], Mapping[int, float]] = lambda part, metric: part.cell(metric).values,
) -> list[Change]:
    """The first runs minus the second on every model and task; comparisons that `without_effect` names are left out.

    Args:
        metric: its name, or its name for a task.
        name: written before the task.
        printed_in: paper and table whose printed spread gives the margin.
        values: seed → number, of a part.
    """
    all_changes = []
    for model, task, subset in evidence.each("model", "task"):
        measure = metric if isinstance(metric, str) else metric(task)
        one, other = first(subset, measure), second(subset, measure)
        if not one or not other or not one.planned or any(map(without_effect, one.planned)):
            continue
        where = task_title(task) + (f" ({model.rsplit('/', 1)[-1]})" if len(evidence.models) > 1 else "")
        margin = published.margin(*printed_in, measure) if printed_in else 0.0
        full_name = f"{name} on {where}" if name else where
        all_changes.append(Change.of(full_name, values(one, measure), values(other, measure), margin))
    return all_changes


def against_baseline(
    evidence: Evidence, metric: str | Callable[[str], str], methods: Sequence[str], **options: Any
) -> list[Change]:
    """Each method minus the baseline, as `changes`; collapsed runs count in isotropy."""
    return [
        change
        for method in methods
        for change in changes(
            evidence, runs(method=method), runs(method="baseline"), metric, name=method_title(method), **options
        )
    ]


def without_effect(config: RunConfig) -> str:
    """Why the method has nothing to act on in this run; "" where it has."""
    if tasks.get(config.task, config.own).kind != "regression":
        return ""
    if config.method == "cosreg" and config.params.get("on") == "output":
        return "the output layer has one row, so the penalty is zero and the run equals the baseline"
    return (
        "the output layer has one singular value, so there is no decay to control" if config.method in SPECTRUM else ""
    )


# ---------------------------------------------------------------------------------------------------- judges


def by_cases(cases: Sequence[bool], sentence: str) -> Judgement:
    """Held if all cases bear the claim out, not held if none does."""
    return ("held" if all(cases) else "cannot tell" if any(cases) else "not held"), sentence


def signs(changes: Sequence[Change], beyond_margin: bool = False) -> list[int]:
    """1 or −1 for each difference that is significant after Holm's correction (beyond its margin), else 0."""
    p_values = two_samples.holm([change.p(change.margin if beyond_margin else 0.0) for change in changes])
    return [int(math.copysign(1, change.mean)) if p < ALPHA else 0 for change, p in zip(changes, p_values, strict=True)]


def signs_of_groups(groups: Sequence[Sequence[Change]]) -> list[list[int]]:
    """`signs` of the differences in each group, corrected over all of them."""
    every = iter(signs([change for group in groups for change in group]))
    return [[next(every) for _ in group] for group in groups]


def detectable(changes: Sequence[Change]) -> str:
    """The differences that the seeds would likely detect, as a sentence after a space; "" without a spread."""
    tested = [change for change in changes if change.tested]
    sizes = sorted(
        power.detectable(len(change.values), ALPHA / len(tested), paired=True) * sd
        for change in tested
        if (sd := mean_sd(change.values)[1])
    )
    ends = " to ".join(dict.fromkeys(wording.number(size) for size in sizes[:1] + sizes[-1:]))
    return f" These seeds would likely detect a true difference of {ends}." if ends else ""


def moved(
    changes: Sequence[Change],
    opening: str,
    *,
    of: Literal["every", "most", "any"] = "every",
    direction: int = 1,
    ended: bool = True,
) -> Judgement:
    """Do the differences go in a direction?

    Held if as many differences are significant as the claim needs (and the runs have `ended`), not held if too
    many are significantly opposite to reach that number.
    """
    if not any(change.tested for change in changes):
        return TOO_FEW
    directed = [direction * sign for sign in signs(changes)]
    needed = {"every": len(changes), "most": len(changes) // 2 + 1, "any": 1}[of]
    holm = f" (paired by seed, Holm's correction for {len(changes)})" if len(changes) > 1 else ""
    sentence = f"{opening}: {'; '.join(change.words() for change in changes)}{holm}.{detectable(changes)}"
    if directed.count(1) >= needed and ended:
        return "held", sentence
    return ("not held" if directed.count(-1) > len(changes) - needed else "cannot tell"), sentence


def unchanged(changes: Sequence[Change], opening: str) -> Judgement:
    """Is nothing changed? Held if every 95 % interval lies within its margin, not held if a difference is significantly larger."""
    if not any(change.tested for change in changes):
        return TOO_FEW
    sentence = f"{opening}: {'; '.join(change.words() for change in changes)}.{_margins(changes)}{detectable(changes)}"
    if all(change.tested and max(map(abs, change.ends)) <= change.margin for change in changes):
        return "held", sentence
    return ("not held" if any(signs(changes, beyond_margin=True)) else "cannot tell"), sentence


def both(*judgements: Judgement) -> Judgement:
    """Held if all are held, not held if one is not."""
    outcomes = [outcome for outcome, _ in judgements]
    sentence = " ".join(dict.fromkeys(sentence for _, sentence in judgements))
    if "not held" in outcomes:
        return "not held", sentence
    return ("held" if set(outcomes) == {"held"} else "cannot tell"), sentence


def never_better(by_method: Mapping[str, Sequence[Change]]) -> Judgement:
    """Is no method better than the baseline on most tasks?

    Not held if one is significantly better on most. Held if for each of them the 95 % interval ends below the margin on at least half
    the tasks.

    Args:
        by_method: method → its differences from the baseline; corrected over all of them.
    """
    every = [change for of_method in by_method.values() for change in of_method]
    if not any(change.tested for change in every):
        return TOO_FEW
    counts = (of_method.count(1) for of_method in signs_of_groups(list(by_method.values())))
    better = dict(zip(by_method, counts, strict=True))
    consistent = [method for method, count in better.items() if 2 * count > len(by_method[method])]
    defined = sorted((change for change in every if change.values), key=lambda change: change.mean)
    sentence = (
        f"{sum(better.values())} of {len(every)} comparisons with the baseline are higher beyond chance (paired by seed, after "
        f"Holm's correction); highest {defined[-1].words()}; lowest {defined[0].words()}.{_margins(every)}{detectable(every)}"
    )
    if consistent:
        return "not held", f"Better on most tasks: {', '.join(consistent)}. {sentence}"
    excluded = [
        2 * sum(change.tested and change.ends[1] <= change.margin for change in of_method) >= len(of_method)
        for of_method in by_method.values()
    ]
    return ("held" if all(excluded) else "cannot tell"), sentence


def _margins(changes: Sequence[Change]) -> str:
    sizes = sorted({change.margin for change in changes})
    if not any(sizes):
        return " The paper prints no spread from which a margin could be taken."
    ends = " to ".join(dict.fromkeys(wording.number(size) for size in sizes[:1] + sizes[-1:]))
    return f" Margin: ±{ends}, {OF_SPREAD}."


Numbers: TypeAlias = tuple[float | None, float | None]


def trend(
    pair: str, direction: int, numbers: Callable[[Evidence, str], Iterable[Numbers]]
) -> Callable[[Evidence], Judgement]:
    """Do two numbers rise together, or against each other, over the settings of each model and task? See `goes_with`.

    Args:
        numbers: the two numbers of each setting, from the runs of a model on a task and the task's metric.
    """
    return lambda evidence: goes_with(
        (
            (f"{model} on {task}", x, y)
            for model, task, part in evidence.each("model", "task")
            for x, y in numbers(part, primary(task))
        ),
        pair,
        direction,
    )


def goes_with(settings: Iterable[tuple[str, float | None, float | None]], pair: str, direction: int) -> Judgement:
    """Do two numbers, averaged over seeds, rise together (direction 1) or against each other (−1) within tasks?

    Held or not held, by the sign, if the permutation test gives p < 0.05; otherwise "cannot tell".

    Args:
        settings: model and task of each setting, and its two numbers; one without both is left out.
        pair: the two numbers in words.
    """
    points = [(name, x, y) for name, x, y in settings if x is not None and y is not None and math.isfinite(x + y)]
    if not points:
        return "cannot tell", "No setting has finished."
    names, first, second = zip(*points, strict=True)
    correlation = rank_correlation(first, second, names)
    if correlation.estimate is None or correlation.p is None:
        return "cannot tell", f"{len(points)} settings have finished; a rank correlation needs four of a task."
    sentence = (
        f"Spearman's ρ {pair} is {wording.number(correlation.estimate)}{wording.interval(correlation.interval)} over "
        f"{correlation.points} settings of {correlation.tasks} {'task' if correlation.tasks == 1 else 'tasks'}, within tasks "
        f"(p {wording.equals(correlation.p)})."
    )
    smallest = power.smallest_correlation(correlation.points - correlation.tasks + 1, ALPHA)
    if correlation.least_p is not None and correlation.least_p >= ALPHA:
        sentence += " No order of so few settings can be significant."
    elif smallest is not None:
        sentence += f" A correlation of about ±{smallest:.2f} would be significant with so many settings."
    if correlation.p >= ALPHA:
        return "cannot tell", sentence
    return ("held" if direction * correlation.estimate > 0 else "not held"), sentence
