"""Whether isotropy correlates with performance: a rank correlation over settings, within each model and task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from isoviz import metrics
from isoviz.comparisons import wording
from isoviz.comparisons.comparing import ALPHA
from isoviz.statistics.rank_correlation import POINTS_FOR_A_TEST, RankCorrelation, rank_correlation


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
    direction = "they rise together" if correlation.estimate > 0 else "one falls as the other rises"
    verdict = direction if correlation.p < ALPHA else "no relation detected"
    text = f"{text} (p {wording.equals(correlation.p)}): {verdict}."
    mixed = correlation.mixed if correlation.tasks > 1 else None
    if mixed is not None and mixed * correlation.estimate < 0:
        text += f" Mixing the tasks would show the opposite, {wording.number(mixed)} (Simpson's paradox)."
    return text


def _stratum_name(stratum: str, used_names: Iterable[str]) -> str:
    settings = json.loads(stratum)
    name = f"{settings['model']} on {settings['task']}"
    used = sum(used_name.startswith(name) for used_name in used_names)
    return f"{name}, setup {used + 1}" if used else name
