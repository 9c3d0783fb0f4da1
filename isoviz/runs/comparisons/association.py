"""Whether isotropy correlates with performance: a rank correlation over settings, within each model and task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from isoviz import metrics
from isoviz.runs.comparisons import wording
from isoviz.runs.comparisons.comparing import ALPHA
from isoviz.statistics.rank_correlation import POINTS_FOR_A_TEST, RankCorrelation, rank_correlation

POINTS_FOR_A_HILL = 6
"""With five, one order in fifteen makes as clear a hill or valley."""


class SettingMean(NamedTuple):
    """One method with its parameters, averaged over seeds, because seeds of one setting say nothing about other settings.

    Attributes:
        stratum: all settings except method and parameters, as JSON; numbers are compared only within a stratum.
    """

    stratum: str
    isotropy: float
    performance: float


class Association(NamedTuple):
    """A rank correlation of an isotropy measure with performance, within strata (`model on task`), and the result in words."""

    correlation: RankCorrelation
    sentence: str


def associate(means: Sequence[SettingMean], measure: str, metric: str | None = None) -> Association:
    """Correlate an isotropy measure with performance over settings.

    Args:
        measure: slug of an isotropy measure.
        metric: of the tasks; each task's primary metric if None.
    """
    names: dict[str, str] = {}
    for stratum in dict.fromkeys(mean.stratum for mean in means):
        names[stratum] = _stratum_name(stratum, names.values())
    correlation = rank_correlation(
        [mean.isotropy for mean in means],
        [mean.performance for mean in means],
        [names[mean.stratum] for mean in means],
    )
    known = metrics.catalogue().get(measure)
    return Association(correlation, _sentence(correlation, known.title if known else measure, metric or "performance"))


def _sentence(correlation: RankCorrelation, measure: str, performance: str) -> str:
    """`Over 7 settings of one task, Spearman's ρ of IsoScore with accuracy is −0.36 [−0.88, 0.69]: no relation …`"""
    too_few = f"not enough settings to tell. At least {POINTS_FOR_A_TEST} on one task are needed."
    if correlation.estimate is None:
        return f"{measure} and {performance}: {too_few}"
    used = {str(name).partition(", setup ")[0] for name, value in correlation.by_task.items() if value is not None}
    strata = "tasks" if len(used) > 1 else "setups of one task"
    scope = "one task" if correlation.tasks == 1 else f"{correlation.tasks} {strata}, within each of them"
    size = f"Spearman's ρ of {measure} with {performance} is {wording.number(correlation.estimate)}"
    text = f"Over {correlation.points} settings of {scope}, {size}{wording.interval(correlation.interval)}"
    if correlation.p is None:
        return f"{text}: {too_few}"
    text = f"{text} (p {wording.equals(correlation.p)}): {_verdict(correlation)}."
    mixed = correlation.mixed if correlation.tasks > 1 else None
    if mixed is not None and mixed * correlation.estimate < 0:
        text += f" Mixing the tasks would show the opposite, {wording.number(mixed)} (Simpson's paradox)."
    return text


def _verdict(correlation: RankCorrelation) -> str:
    """Whichever of two questions has the smaller p, with Holm's correction: does it rise or fall, is there a hill or a valley?"""
    assert correlation.estimate is not None and correlation.p is not None and correlation.least_p is not None
    bend, bend_p = correlation.bend or (0.0, 1.0)
    limit = ALPHA / 2 if correlation.bend else ALPHA
    if bend_p < min(limit, correlation.p):
        return f"performance is {'highest' if bend < 0 else 'lowest'} between the ends (p {wording.equals(bend_p)})"
    if correlation.p < limit:
        return "they rise together" if correlation.estimate > 0 else "one falls as the other rises"
    if correlation.least_p >= limit:
        least = f"smallest possible p {correlation.least_p:.2g}"
        return f"no relation detected, and so few settings could not have shown one ({least}, {limit} needed)"
    if correlation.tasks == 1 and correlation.points < POINTS_FOR_A_HILL:
        return (
            f"no relation detected, rising or falling (a hill or a valley shows from {POINTS_FOR_A_HILL} settings on)"
        )
    return "no relation detected, neither rising or falling nor with a hill or a valley"


def _stratum_name(stratum: str, used_names: Iterable[str]) -> str:
    settings = json.loads(stratum)
    name = f"{settings['model']} on {settings['task']}"
    used = sum(used_name.startswith(name) for used_name in used_names)
    return f"{name}, setup {used + 1}" if used else name
