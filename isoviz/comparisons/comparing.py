"""Compares runs in a table that shows which of them differ significantly."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isoviz import metrics, tasks
from isoviz.comparisons import wording
from isoviz.comparisons.learning import nothing_learned
from isoviz.comparisons.setups import METHOD, Factor, SideBySide, check_comparable, side_by_side
from isoviz.comparisons.table import Arm, Comparison, Excluded, Part, Table, Verdict
from isoviz.errors import InputError
from isoviz.events import Started
from isoviz.runs.rows import RunRow
from isoviz.statistics import correction, effect_size, groups, intervals, mean_sd, power, two_samples
from isoviz.tasks.metrics import METRICS

ALPHA = 0.05
MOST_LETTERS = 30
"""Maximum number of arms with letters: with more pairs to correct for, no difference is significant and letters are
unreadable."""


def compare(
    rows: Sequence[RunRow],
    *,
    by: str = METHOD,
    metric: str | None = None,
    baseline: str | None = None,
    started: Mapping[str, Started | None] | None = None,
    alpha: float = ALPHA,
) -> Table:
    """Compare runs by one setting, in one part per model and task.

    Seeds are paired if the runs of a seed share the order of their training rows and their new weights. Runs that did not
    finish, diverged, collapsed or lack the value are excluded and listed. If a seed ran more than once, its newest finished run
    counts.

    Args:
        rows: finished or not, possibly of several models and tasks.
        by: `method` (with its parameters), a run setting, or a method parameter.
        metric: a task metric, or the slug of an isotropy measure; the task's primary metric if None.
        baseline: label of the reference arm, or slug of its method; by default the method `baseline` if present, else the first
            arm.
        started: the `Started` event of each run, by run id. With it, runs that read different rows or weights under the same
            name are refused, and runs that learned nothing are reported.
        alpha: probability of any false "significant difference" among the table's comparisons.

    Raises:
        DifferentSetupsError: runs of one part differ in more than the compared setting.
        InputError: an invalid name, or nothing to compare.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha: must be between 0 and 1 (got {alpha:g})", field="alpha")
    factor = Factor.named(by, rows)
    check_comparable(factor, rows)
    parts = [_scored(part, factor, metric, baseline, started or {}) for part in side_by_side(rows, factor, started)]
    if baseline is not None and not any(arm.is_baseline for part in parts for arm in part.arms):
        labels = dict.fromkeys(arm.label for part in parts for arm in part.arms)
        raise InputError(f"baseline: no runs of '{baseline}' here (these are: {', '.join(labels)})", field="baseline")
    tested = [[_tested(arm, part, factor.pairs) for arm in part.arms if not arm.is_baseline] for part in parts]
    p_values = [test.p for part in tested for test in part]
    adjusted = iter(correction.holm([math.nan if p is None else p for p in p_values]).tolist() if p_values else [])
    count = sum(p is not None for p in p_values)
    return Table(
        by=by,
        alpha=alpha,
        tests=count,
        parts=[
            _concluded(
                part, [_judged(test, next(adjusted), count, alpha, part.scale) for test in tests], factor.pairs, alpha
            )
            for part, tests in zip(parts, tested, strict=True)
        ],
    )


@dataclass(frozen=True)
class _Test:
    """A comparison before correction; `sd` is the standard deviation used to scale the difference."""

    comparison: Comparison
    sd: float | None = None

    @property
    def p(self) -> float | None:
        return self.comparison.p


def _scored(
    part: SideBySide, factor: Factor, metric: str | None, baseline: str | None, started: Mapping[str, Started | None]
) -> Part:
    """The part with its arms' values, before any comparison."""
    first = next(iter(part.arms.values()))[0].config
    name = _metric(part, metric)
    arms = [_arm(label, rows, name) for label, rows in part.arms.items()]
    configs = [rows[0].config for rows in part.arms.values()]
    baseline_name = baseline or ("baseline" if factor.name == METHOD else None)
    chosen = [
        index
        for index, config in enumerate(configs)
        if baseline_name in (arms[index].label, config.method if factor.name == METHOD else "")
    ]
    if not chosen and baseline is None:
        chosen = [0]
    arms = [arm.model_copy(update={"is_baseline": index in chosen[:1]}) for index, arm in enumerate(arms)]
    known = METRICS.get(name)
    return Part(
        model=first.model,
        task=first.task,
        metric=name,
        scale=known.highest if known else 0.0,
        settings=part.settings,
        arms=arms,
        comparisons=[],
        pairs_tested=0,
        warnings=_warnings(part, first.task, started),
        notes=_notes(part, started),
    )


def _metric(part: SideBySide, requested: str | None) -> str:
    rows = [row for rows in part.arms.values() for row in rows]
    task = rows[0].config.task
    reported = dict.fromkeys(name for row in rows if row.result for name in row.result.metrics)
    task_entry = tasks.catalogue().get(task)
    if requested is None:
        if task_entry is None and not reported:
            raise InputError(f"metric: no run on {task} has finished", field="metric")
        return task_entry.primary if task_entry else next(iter(reported))
    measures = [
        slug
        for slug, measure in metrics.catalogue().items()
        if measure.estimate is not None and measure.gives != "curve"
    ]
    if requested in reported or requested in measures or (task_entry is not None and requested in task_entry.metrics):
        return requested
    allowed = ", ".join([*(reported or (task_entry.metrics if task_entry else ())), *measures])
    raise InputError(f"metric: runs on {task} have no '{requested}' (allowed: {allowed})", field="metric")


def value_of(row: RunRow, metric: str) -> float | None:
    """A finished run's task metric or isotropy measure; None if it is undefined."""
    if row.result is None:
        return None
    metric_values, isotropy = row.result.metrics, row.result.isotropy
    value = metric_values[metric] if metric in metric_values else isotropy.number(metric)
    return None if value is None or math.isnan(value) else float(value)


def newest_finished(rows: Sequence[RunRow]) -> dict[int, RunRow]:
    """The newest finished run of each seed in one setup."""
    return {row.config.seed: row for row in sorted(rows, key=lambda row: row.id) if row.status == "finished"}


def why_excluded(row: RunRow, metric: str) -> str:
    """Why a run is excluded, in words; "" if it counts."""
    if row.status != "finished":
        message = str((row.error or {}).get("message") or "")
        return f"{row.status}: {message}" if message else row.status
    if row.collapsed:
        return f"collapsed: {row.collapsed}"
    return f"{metric} is undefined" if value_of(row, metric) is None else ""


def _arm(label: str, rows: Sequence[RunRow], metric: str) -> Arm:
    newest = newest_finished(rows)
    finished = [row for row in rows if row.status == "finished"]
    looked_at = [*newest.values(), *(row for row in rows if row.status != "finished")]
    excluded = [
        Excluded(run=row.id, seed=row.config.seed, reason=reason)
        for row in sorted(looked_at, key=lambda row: (row.config.seed, row.id))
        if (reason := why_excluded(row, metric))
        # a seed that ran again after a failure is present
        and (row.status == "finished" or row.config.seed not in newest)
    ]
    values = {
        seed: value
        for seed, row in sorted(newest.items())
        if not row.collapsed and (value := value_of(row, metric)) is not None
    }
    mean, sd = mean_sd(values.values())
    interval = intervals.of_mean(list(values.values()))
    return Arm(
        label=label,
        is_baseline=False,
        values=values,
        runs={seed: newest[seed].id for seed in values},
        mean=mean,
        sd=sd,
        median=statistics.median(values.values()) if values else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        excluded=excluded,
        repeats=len(finished) - len(newest),
    )


def _warnings(part: SideBySide, task: str, started: Mapping[str, Started | None]) -> list[str]:
    """Warnings that nothing was learned, always judged by the task's primary metric."""
    task_entry = tasks.catalogue().get(task)
    rows = [row for arm in part.arms.values() for row in arm if row.status == "finished"]
    starts = [start for row in rows if (start := started.get(row.id)) is not None]
    simple = {name: value for start in starts for name, value in start.baselines.items()}
    warning = nothing_learned(task, (value_of(row, task_entry.primary) for row in rows), simple) if task_entry else ""
    return [warning] if warning else []


def _notes(part: SideBySide, started: Mapping[str, Started | None]) -> list[str]:
    rows = [row for rows in part.arms.values() for row in rows]
    starts = [start for row in rows if (start := started.get(row.id)) is not None]
    notes = []
    devices = list(dict.fromkeys(start.device for start in starts))
    if len(devices) > 1:
        notes.append(f"The runs come from several devices ({', '.join(devices)}), which round differently.")
    names = ("isoviz", "torch", "transformers")  # older runs do not record their isoviz version
    libraries = {name: {start.versions[name] for start in starts if name in start.versions} for name in names}
    changed = [name for name, versions in libraries.items() if len(versions) > 1]
    if changed:
        notes.append(f"The runs come from several versions of {' and '.join(changed)}.")
    if any(row.result is not None and row.result.random_weights for row in rows):
        notes.append("Some of the encoder's weights were random, because the checkpoint lacked them.")
    return notes


def _tested(arm: Arm, part: Part, paired: bool) -> _Test:
    base = next((candidate for candidate in part.arms if candidate.is_baseline), None)
    if base is None:  # no baseline runs in this part
        base = Arm(
            label="baseline", is_baseline=True, values={}, runs={}, mean=None, sd=None, median=None, low=None, high=None
        )
    return _paired(arm, base) if paired else _unpaired(arm, base)


def _paired(arm: Arm, base: Arm) -> _Test:
    seeds = sorted(arm.values.keys() & base.values.keys())
    differences = [arm.values[seed] - base.values[seed] for seed in seeds]
    mean, sd = mean_sd(differences)
    test = _Test(
        Comparison(
            arm=arm.label,
            baseline=base.label,
            difference=mean,
            paired=True,
            n=len(seeds),
            n_baseline=len(seeds),
            unpaired=sorted(arm.values.keys() ^ base.values.keys()),
            test="paired t-test",
            verdict="too few seeds",
            sentence="",
        ),
        sd,
    )
    if len(seeds) < wording.ENOUGH or mean is None or sd is None:
        return test
    return _with_test(
        test,
        p=float(two_samples.paired_t(differences)),
        wilcoxon=float(two_samples.wilcoxon(differences)),
        interval=intervals.of_mean(differences),
        effect=effect_size.of_pairs(mean, sd, len(seeds)),
    )


def _unpaired(arm: Arm, base: Arm) -> _Test:
    n, m = arm.n, base.n
    comparable = arm.mean is not None and base.mean is not None
    test = _Test(
        Comparison(
            arm=arm.label,
            baseline=base.label,
            difference=arm.mean - base.mean if arm.mean is not None and base.mean is not None else None,
            paired=False,
            n=n,
            n_baseline=m,
            test="Welch's t-test",
            verdict="too few seeds",
            sentence="",
        )
    )
    if min(n, m) < wording.ENOUGH or not comparable:
        return test
    values, base_values = list(arm.values.values()), list(base.values.values())
    summaries = (arm.mean, arm.sd, n), (base.mean, base.sd, m)
    return _with_test(
        replace(test, sd=math.sqrt((arm.sd**2 + base.sd**2) / 2)),  # type: ignore[operator]
        p=float(two_samples.welch_t(values, base_values)),
        wilcoxon=math.nan,
        interval=intervals.of_difference(values, base_values),
        effect=effect_size.of_samples(*summaries),  # type: ignore[arg-type]
    )


def _with_test(
    test: _Test,
    p: float,
    wilcoxon: float,
    interval: intervals.Interval | None,
    effect: effect_size.EffectSize | None,
) -> _Test:
    if math.isnan(p):
        return replace(test, comparison=test.comparison.model_copy(update={"verdict": "no spread"}))
    update: dict[str, Any] = {"p": p, "p_wilcoxon": None if math.isnan(wilcoxon) else wilcoxon}
    if interval:
        update |= {"low": interval.low, "high": interval.high}
    if effect:
        update |= {"g": effect.g, "g_low": effect.interval.low, "g_high": effect.interval.high}
    return replace(test, comparison=test.comparison.model_copy(update=update))


def _judged(test: _Test, p_holm: float, tests: int, alpha: float, scale: float) -> Comparison:
    """Add the corrected p, the verdict and the number of seeds needed, which assumes the strictest step of the correction."""
    comparison = test.comparison
    update: dict[str, Any] = {}
    if comparison.p is not None and test.sd and comparison.difference is not None:
        verdict: Verdict = "apart" if p_holm < alpha else "not apart"
        level = alpha / max(tests, 1)
        paired, n = comparison.paired, min(comparison.n, comparison.n_baseline)
        update = {
            "p_holm": p_holm,
            "verdict": verdict,
            "seeds_needed": power.seeds_needed(comparison.difference / test.sd, level, paired=paired),
            "detectable": power.detectable(n, level, paired=paired) * test.sd,
        }
    judged = comparison.model_copy(update=update)
    return judged.model_copy(update={"sentence": wording.sentence(judged, tests, scale)})


def _concluded(part: Part, comparisons: list[Comparison], paired: bool, alpha: float) -> Part:
    """Add the comparisons, and the letters shared by settings that do not differ significantly."""
    lettered = [at for at, arm in enumerate(part.arms) if arm.n >= wording.ENOUGH]
    if not 2 <= len(lettered) <= MOST_LETTERS:
        return part.model_copy(update={"comparisons": comparisons})
    pairs = [(first, second) for place, first in enumerate(lettered) for second in lettered[place + 1 :]]
    p = [_p_of_pair(part.arms[first], part.arms[second], paired) for first, second in pairs]
    adjusted = correction.holm(p)
    place = {at: number for number, at in enumerate(lettered)}
    apart = [(place[first], place[second]) for (first, second), q in zip(pairs, adjusted, strict=True) if q < alpha]
    means = [part.arms[at].mean or 0.0 for at in lettered]
    order = sorted(range(len(lettered)), key=lambda number: -means[number])
    letters = groups.letters(len(lettered), apart, order)
    arms = [
        arm.model_copy(update={"letters": letters[place[at]] if at in place else ""})
        for at, arm in enumerate(part.arms)
    ]
    tested = int(np.isfinite(p).sum())
    return part.model_copy(update={"comparisons": comparisons, "arms": arms, "pairs_tested": tested})


def _p_of_pair(arm: Arm, second_arm: Arm, paired: bool) -> float:
    """p of the test between two arms; nan if there is none."""
    if not paired:
        return float(two_samples.welch_t(list(arm.values.values()), list(second_arm.values.values())))
    seeds = arm.values.keys() & second_arm.values.keys()
    if len(seeds) < wording.ENOUGH:
        return math.nan
    return float(two_samples.paired_t([arm.values[seed] - second_arm.values[seed] for seed in sorted(seeds)]))
