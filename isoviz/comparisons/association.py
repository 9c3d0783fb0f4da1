"""Whether isotropy correlates with performance: a rank correlation over settings, within each model and task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from isoviz import metrics, tasks
from isoviz.comparisons import wording
from isoviz.comparisons.comparing import newest_finished, value_of, why_excluded
from isoviz.comparisons.setups import METHOD, Factor, strata
from isoviz.comparisons.table import Excluded
from isoviz.runs.rows import RunRow
from isoviz.statistics import mean_sd
from isoviz.statistics.rank_correlation import POINTS_FOR_A_TEST, Kind, rank_correlation

ALPHA = 0.05


class SettingMean(NamedTuple):
    """One method with its parameters, averaged over seeds.

    Attributes:
        stratum: all settings except method and parameters, as JSON; numbers are compared only within a stratum.
    """

    stratum: str
    isotropy: float
    performance: float


class Association(BaseModel):
    """A rank correlation of an isotropy measure with performance.

    Attributes:
        estimate, low, high: the correlation of type `kind` and its 95 % interval; None if there are too few settings.
        p: from the permutation test.
        settings: number of points: methods with their parameters, each averaged over seeds.
        tasks: number of strata (model, task and all other settings) they come from; points are never compared across strata.
        by_task: `model on task` → its correlation; None if it has too few settings or nothing varies.
        mixed: the correlation with tasks mixed, for a warning only.
        sentence: the result in words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    measure: str
    metric: str
    kind: Kind
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    settings: int
    tasks: int
    by_task: dict[str, float | None]
    mixed: float | None
    excluded: list[Excluded]
    sentence: str


def associate(
    rows: Sequence[RunRow], measure: str, *, metric: str | None = None, kind: Kind = "spearman"
) -> Association:
    """Correlate an isotropy measure with performance over the settings of finished runs.

    A point is a method with its parameters, averaged over seeds, because seeds of one setting say nothing about other settings.
    Runs are compared only if they share everything except the method and its parameters.

    Args:
        measure: slug of an isotropy measure.
        metric: of the tasks; each task's primary metric if None.
    """
    means: list[SettingMean] = []
    excluded: list[Excluded] = []
    factor = Factor(METHOD, False)
    for stratum, members in strata(rows).items():
        setups: dict[str, list[RunRow]] = {}
        for row in members:
            setups.setdefault(factor.key(row.config), []).append(row)
        for runs in setups.values():
            points = []
            for row in newest_finished(runs).values():
                name = metric or _primary(row)
                isotropy_value, performance_value = value_of(row, measure), value_of(row, name)
                reason = why_excluded(row, name) or (f"{measure} is undefined" if isotropy_value is None else "")
                if reason or isotropy_value is None or performance_value is None:
                    excluded.append(Excluded(run=row.id, seed=row.config.seed, reason=reason))
                else:
                    points.append((isotropy_value, performance_value))
            if points:
                isotropy, performance = (mean_sd(values)[0] for values in zip(*points, strict=True))
                means.append(SettingMean(stratum, isotropy or 0.0, performance or 0.0))
    return associate_means(means, measure, metric=metric, kind=kind, excluded=excluded)


def associate_means(
    means: Sequence[SettingMean],
    measure: str,
    *,
    metric: str | None = None,
    kind: Kind = "spearman",
    excluded: Sequence[Excluded] = (),
) -> Association:
    """Like `associate`, for settings whose means are already known."""
    of_name: dict[str, str] = {}
    for stratum in dict.fromkeys(mean.stratum for mean in means):
        of_name[stratum] = _stratum_name(stratum, of_name.values())
    correlation = rank_correlation(
        [mean.isotropy for mean in means],
        [mean.performance for mean in means],
        [mean.stratum for mean in means],
        kind=kind,
    )
    association = Association(
        measure=measure,
        metric=metric or "primary",
        kind=kind,
        estimate=correlation.estimate,
        low=correlation.interval.low if correlation.interval else None,
        high=correlation.interval.high if correlation.interval else None,
        p=correlation.p,
        settings=correlation.points,
        tasks=correlation.tasks,
        by_task={of_name[str(name)]: value for name, value in correlation.by_task.items()},
        mixed=correlation.mixed if correlation.tasks > 1 else None,
        excluded=list(excluded),
        sentence="",
    )
    return association.model_copy(update={"sentence": sentence(association)})


def sentence(association: Association) -> str:
    """`Over 7 settings of one task, Spearman's ρ of IsoScore with accuracy is −0.36 [−0.88, 0.69]: no relation …`"""
    metric = metrics.catalogue().get(association.measure)
    title = metric.title if metric else association.measure
    performance = "performance" if association.metric == "primary" else association.metric
    coefficient = "Spearman's ρ" if association.kind == "spearman" else "Kendall's τ"
    scope = (
        "one task"
        if association.tasks == 1
        else f"{association.tasks} {_strata_noun(association)}, within each of them"
    )
    if association.estimate is None:
        return f"{title} and {performance}: not enough settings to tell. At least {POINTS_FOR_A_TEST} on one task are needed."
    ends = (
        f" [{wording.number(association.low)}, {wording.number(association.high)}]"
        if association.low is not None
        else ""
    )
    size = f"{coefficient} of {title} with {performance} is {wording.number(association.estimate)}{ends}"
    text = f"Over {association.settings} settings of {scope}, {size}"
    if association.p is None:
        return f"{text}: not enough settings to tell. At least {POINTS_FOR_A_TEST} on one task are needed."
    direction = "they rise together" if association.estimate > 0 else "one falls as the other rises"
    verdict = direction if association.p < ALPHA else "no relation detected"
    text = f"{text} (p = {wording.probability(association.p)}): {verdict}.".replace("p = <", "p <")
    if association.mixed is not None and association.mixed * association.estimate < 0:
        text += f" Mixing the tasks would show the opposite, {wording.number(association.mixed)} (Simpson's paradox)."
    return text


def _strata_noun(association: Association) -> str:
    """The noun for the strata: "tasks", or "setups of one task"."""
    used = {name.partition(", setup ")[0] for name, value in association.by_task.items() if value is not None}
    return "tasks" if len(used) > 1 else "setups of one task"


def _primary(row: RunRow) -> str:
    task = tasks.catalogue().get(row.config.task)
    reported = row.result.metrics if row.result else {}
    return task.primary if task else next(iter(reported), "")


def _stratum_name(stratum: str, used_names: Iterable[str]) -> str:
    settings = json.loads(stratum)
    name = f"{settings['model']} on {settings['task']}"
    used = sum(used_name.startswith(name) for used_name in used_names)
    return f"{name}, setup {used + 1}" if used else name
