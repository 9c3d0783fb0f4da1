"""Compares runs in a table that shows which of them differ significantly."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isoviz import metrics, tasks
from isoviz.errors import InputError
from isoviz.events import Started
from isoviz.runs.comparisons import wording
from isoviz.runs.comparisons.setups import METHOD, Factor, SideBySide, side_by_side
from isoviz.runs.comparisons.table import Arm, Comparison, Excluded, Part, Table
from isoviz.runs.rows import RunRow
from isoviz.statistics import intervals, mean_sd, power, two_samples
from isoviz.tasks.metrics import METRICS

ALPHA = 0.05
_FREEDOM = 4
"""Degrees of freedom from which a spread is estimated before runs start."""


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
    finish, diverged or lack the value are excluded and listed, and from comparisons of a task metric those that learned nothing.
    If a seed ran more than once, its newest finished run counts.

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
        raise InputError.at("alpha", f"must be between 0 and 1 (got {alpha:g})")
    factor = Factor.named(by, rows)
    if not rows:
        raise InputError.at("id", "no runs to compare")
    if len({factor.key(row.config) for row in rows}) < 2:
        only = factor.label(rows[0].config)
        raise InputError.at("by", f"all of these runs have the same {factor.name}: {only}")
    parts = [_scored(part, factor, metric, baseline, started or {}) for part in side_by_side(rows, factor, started)]
    if baseline is not None and not any(arm.is_baseline for part in parts for arm in part.arms):
        labels = dict.fromkeys(arm.label for part in parts for arm in part.arms)
        raise InputError.at("baseline", f"no runs of '{baseline}' here (these are: {', '.join(labels)})")
    baselines = [next((arm for arm in part.arms if arm.is_baseline), _NO_BASELINE) for part in parts]
    pairs = [(part, arm, base) for part, base in zip(parts, baselines, strict=True) for arm in part.arms]
    pairs = [pair for pair in pairs if not pair[1].is_baseline]
    p_values = [_p(arm, base, factor.pairs) for _, arm, base in pairs]
    adjusted = two_samples.holm(p_values).tolist() if p_values else []
    tests = sum(not math.isnan(p) for p in p_values)
    comparisons: dict[int, list[Comparison]] = {}
    for (part, arm, base), *p in zip(pairs, p_values, adjusted, strict=True):
        compared = _comparison(arm, base, factor.pairs, (p[0], p[1]), tests, alpha, part.scale)
        comparisons.setdefault(id(part), []).append(compared)
    compared_parts = [part.model_copy(update={"comparisons": comparisons.get(id(part), [])}) for part in parts]
    return Table(by=by, alpha=alpha, tests=tests, parts=compared_parts)


def _scored(
    part: SideBySide, factor: Factor, metric: str | None, baseline: str | None, started: Mapping[str, Started | None]
) -> Part:
    first = part.rows[0].config
    name = _metric(part.rows, metric)
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
        warnings=_warnings(part.rows, started),
        notes=_notes(part.rows, started),
    )


def _metric(rows: Sequence[RunRow], requested: str | None) -> str:
    task = rows[0].config.task
    reported = dict.fromkeys(name for row in rows if row.result for name in row.result.metrics)
    task_entry = tasks.catalogue().get(task)
    if requested is None:
        if task_entry is None and not reported:
            raise InputError.at("metric", f"no run on {task} has finished")
        return task_entry.primary if task_entry else next(iter(reported))
    measures = [slug for slug, measure in metrics.catalogue().items() if measure.in_runs]
    if requested in reported or requested in measures or (task_entry is not None and requested in task_entry.metrics):
        return requested
    allowed = ", ".join([*(reported or (task_entry.metrics if task_entry else ())), *measures])
    raise InputError.at("metric", f"runs on {task} have no '{requested}' (allowed: {allowed})")


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
    if row.left_out and row.result is not None and metric in row.result.metrics:
        return row.left_out  # its isotropy counts: a collapse is seen by it
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
        if not why_excluded(row, metric) and (value := value_of(row, metric)) is not None
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


def nothing_learned(task: str, scores: Iterable[float | None], simple: Mapping[str, float | None]) -> str:
    """The warning that runs which do not beat a simple approach say nothing about their methods; "" if one does or no reference
    is known.

    Args:
        task: its slug; there is no reference for error metrics or tasks outside the catalogue.
        scores: the task's primary metric of each finished run; None if it is undefined.
        simple: name of a simple approach (`bag_of_words`) → its score in this metric.
    """
    task_entry = tasks.catalogue().get(task)
    reached = {name: value for name, value in simple.items() if value is not None}
    values = list(scores)
    if task_entry is None or not reached or not values or not METRICS[task_entry.primary].higher_is_better:
        return ""
    best = max(reached, key=reached.__getitem__)
    if any(value is not None and value > reached[best] for value in values):
        return ""
    subject = "no run beats" if len(values) > 1 else "this run does not beat"
    level = wording.number(reached[best], scale=METRICS[task_entry.primary].highest)
    return f"Nothing was learned: {subject} {best.replace('_', ' ')} ({level}). Do not compare."


def _warnings(rows: Sequence[RunRow], started: Mapping[str, Started | None]) -> list[str]:
    task_entry = tasks.catalogue().get(rows[0].config.task)
    finished = [row for row in rows if row.status == "finished"]
    starts = [start for row in finished if (start := started.get(row.id)) is not None]
    simple = {name: value for start in starts for name, value in start.baselines.items()}
    scores = (value_of(row, task_entry.primary) if task_entry else None for row in finished)
    return [warning] if (warning := nothing_learned(rows[0].config.task, scores, simple)) else []


def _notes(rows: Sequence[RunRow], started: Mapping[str, Started | None]) -> list[str]:
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


_NO_BASELINE = Arm(
    label="baseline", is_baseline=True, values={}, runs={}, mean=None, sd=None, median=None, low=None, high=None
)
"""Of a part without runs of the baseline."""


def _differences(arm: Arm, base: Arm) -> list[float]:
    """By seed; 0 where two values differ by rounding only."""
    pairs = [(arm.values[seed], base.values[seed]) for seed in sorted(arm.values.keys() & base.values.keys())]
    return [0.0 if math.isclose(*pair, rel_tol=two_samples.ROUNDING) else pair[0] - pair[1] for pair in pairs]


def _p(arm: Arm, base: Arm, paired: bool) -> float:
    if paired:
        differences = _differences(arm, base)
        return float(two_samples.paired_t(differences)) if len(differences) >= wording.ENOUGH else math.nan
    if min(arm.n, base.n) < wording.ENOUGH:
        return math.nan
    return float(two_samples.welch_t(list(arm.values.values()), list(base.values.values())))


def _comparison(
    arm: Arm, base: Arm, paired: bool, p: tuple[float, float], tests: int, alpha: float, scale: float
) -> Comparison:
    """An arm minus the baseline: size, interval, effect, verdict and the seeds needed.

    Args:
        p: of the test, uncorrected and corrected; nan if there is none.
        tests: how many the correction is for; the number of seeds needed assumes its strictest step.
    """
    differences = _differences(arm, base)
    both = arm.mean is not None and base.mean is not None
    mean, sd = mean_sd(differences) if paired else (arm.mean - base.mean if both else None, None)  # type: ignore[operator]
    n, n_baseline = (len(differences),) * 2 if paired else (arm.n, base.n)
    fields: dict[str, Any] = {
        "difference": mean,
        "unpaired": sorted(arm.values.keys() ^ base.values.keys()) if paired else [],
        "test": "paired t-test" if paired else "Welch's t-test",
        "verdict": "too few seeds" if min(n, n_baseline) < wording.ENOUGH else "no spread",
    }
    if not math.isnan(p[0]):
        if paired:
            interval, effect = intervals.of_mean(differences), intervals.effect_of_pairs(mean, sd, n)  # type: ignore[arg-type]
        else:
            sd = math.sqrt((arm.sd**2 + base.sd**2) / 2)  # type: ignore[operator]
            interval = intervals.of_difference(list(arm.values.values()), list(base.values.values()))
            effect = intervals.effect_of_samples((arm.mean, arm.sd, n), (base.mean, base.sd, n_baseline))  # type: ignore[arg-type]
        fields |= interval._asdict() if interval else {}
        fields |= dict(zip(("g", "g_low", "g_high"), effect, strict=True)) if effect else {}
        level = alpha / max(tests, 1)
        assert mean is not None and sd
        fields |= {
            "p": p[0],
            "p_holm": p[1],
            "verdict": "apart" if p[1] < alpha else "not apart",
            "seeds_needed": power.seeds_needed(mean / sd, level, paired=paired),
            "detectable": power.detectable(min(n, n_baseline), level, paired=paired) * sd,
        }
    comparison = Comparison(
        arm=arm.label, baseline=base.label, paired=paired, n=n, n_baseline=n_baseline, sentence="", **fields
    )
    return comparison.model_copy(update={"sentence": wording.sentence(comparison, tests, scale)})


def smallest_difference(scores: Iterable[Sequence[float]], seeds: int) -> tuple[float, int] | None:
    """The difference of two methods that a t-test at 5 % would find with 80 % power, and from how many runs the spread is.

    Args:
        scores: of each finished setting, the metric of its seeds; settings with one seed say nothing. Their variances are pooled.
        seeds: that each of the two methods will have. Pairs of seeds usually show less, so this is on the safe side.

    Returns:
        None for one seed, or where too few runs have finished.
    """
    groups = [values for values in map(list, scores) if len(values) > 1]
    freedom = sum(len(values) - 1 for values in groups)
    if seeds < 2 or freedom < _FREEDOM:
        return None
    squares = sum((value - math.fsum(values) / len(values)) ** 2 for values in groups for value in values)
    return power.detectable(seeds, ALPHA, paired=False) * math.sqrt(squares / freedom), freedom + len(groups)
