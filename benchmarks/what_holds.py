"""Writes docs/what-holds.md: does the literature on isotropy hold together? From the runs of docs/data/what-holds.zip; trains nothing.

    python -m factory.record_what_holds train --store DIR && python -m factory.record_what_holds pack --store DIR
    python benchmarks/what_holds.py [--runs docs/data/what-holds.zip] [--out docs]

Declared before the runs. An *arm* is a method at its default strength, I-STAR at λ = −1 and λ = 1. All numbers are compared within a task.

1. Which measures agree? Spearman's ρ of two measures over all runs of a task, mean over tasks. Interval: percentile bootstrap that draws
   arms (the same in all tasks) and, in each task, seeds. No test.
2. Which measures predict performance? (a) Across arms: ρ of the arms' means over seeds. The test permutes arms, in all tasks at once,
   because an arm is not a new arm in another task. (b) Across seeds: within an arm, ρ over its seeds, mean over arms and tasks. The test
   permutes seeds, for all arms of a task at once, because these share data order and initial head. Holm's correction over all measures
   and both test sets of a scale and question. Power: the smallest ρ that 80 % of such studies would detect, by Fieller's variance of
   Fisher's z, if a further task brings nothing new, and if each task is new.
3. Less isotropic, or more? I-STAR at λ = −1 and λ = 1 and IsoBN minus the baseline of the same seed: the change of the measure that the
   method acts on, and of the score with Student's t interval; Holm over all tests of a scale. Equivalence: the largest change that two
   one-sided tests at 5 % do not exclude.

Left out of 2 and 3: tasks on which the baseline does not beat the best simple approach in every seed. Left out of 2: arms with a
collapsed run in any remaining task, whose scores say only that they collapsed. A seed counts once all arms have finished on a task.

Added after the first seed: (i) spectrum control has nothing to act on where the output layer has one row, and its runs there are the
baseline's; arms that equal the baseline on a task are left out of 1 and 2. (ii) The sign of ρ differed between tasks, so 2a has a second
test, of the mean of ρ² over tasks, which a mean of ρ near 0 does not hide. (iii) Answers 2 and 3 are repeated with collapsed runs.
(iv) The participation ratio is left out: clouds of equal d stand in the same order by it and by IsoScore.
(v) MiniLM's third task was CoLA, where the baseline predicts one class (seed 0, one epoch, and still after three): MRPC takes its place,
with two epochs. (vi) SIGReg, GOR, VICReg and SimCSE keep the strengths that were their defaults; since the runs these are a tenth.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _report import ROOT, Table, literal, write_section
from scipy import stats

from factory.record_what_holds import ARMS, GROUPS, PACKED, SEEDS, SHIFT, STRENGTHS
from isoviz import metrics, tasks
from isoviz.runs.comparisons.comparing import value_of
from isoviz.runs.comparisons.wording import number, probability
from isoviz.runs.naming import method_title, variant
from isoviz.runs.store import Store
from isoviz.statistics import intervals, two_samples
from isoviz.studies import records
from isoviz.studies.judging import without_effect
from isoviz.studies.records import RunRecord, task_title

PAGE, SECTION = "what-holds.md", "what-holds"
DRAWS, RESAMPLES, ALPHA = 9_999, 1_000, 0.05
FALLS = ("ev_1", "mean_cosine", "uniformity", "epps_pulley", "i2", "alpha_req", "rogue_share", "abs_correlation")
"""Measures that fall as a cloud becomes more isotropic: their sign is changed, so that more is always more isotropic."""
AS_THEY_ARE = ("hubness", "reciprocity", "massive_activation")
"""Measures without one value at isotropy: their sign is not changed."""
MOVED = {ARMS.index(("istar", {"lam": lam})): "isoscore_star" for lam in (-1.0, 1.0)} | {
    ARMS.index(("isobn", {})): "isoscore"
}
"""The arms of question 3 → the measure that the method acts on."""
FEW = "No answer yet: no task has three seeds."
TEST_SETS = ("validation rows", "mistyped rows")

Array = np.ndarray[Any, np.dtype[Any]]
Parts = tuple[list[str], list[Table]]
"""Sentences, and the tables that carry them."""


@dataclass(frozen=True)
class Block:
    """The runs of one task; arrays have an arm per row, the baseline first, and a seed per column.

    Attributes:
        isotropy: (measures, arms, seeds), oriented.
        every: (2, arms, seeds): the primary metric on each of `TEST_SETS`.
        scores: the same, nan for a collapsed run.
        idle: arms whose method has nothing to act on.
        simple: the best simple approach's score on the validation rows; 0 where a correlation is undefined for all.
        n, d: of the head cloud.
    """

    task: str
    seeds: tuple[int, ...]
    isotropy: Array
    every: Array
    scores: Array
    idle: frozenset[int]
    simple: float
    n: int
    d: int

    @property
    def learned(self) -> bool:
        """Whether the baseline beats the best simple approach in every seed."""
        return bool((self.scores[0, 0] > self.simple).all())


@contextmanager
def opened(file: Path) -> Iterator[Store]:
    """The packed store, unpacked in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(file) as archive:
        (Path(folder) / (name := archive.namelist()[0])).touch(mode=0o600)
        archive.extract(name, folder)
        with closing(Store(folder)) as store:
            yield store


def blocks(store: Store, group: str) -> tuple[list[str], list[Block]]:
    """The scalar measures that every run of a scale has, and its tasks in the order in which they were run."""
    runs = [records.record(store, row.id) for row in store.list(group=group, order="oldest")]
    names = [slug for slug in metrics.catalogue() if slug != "participation_ratio"]
    slugs = [slug for slug in names if all(value_of(run.row, slug) is not None for run in runs)]
    by_task = {task: [run for run in runs if run.config.task == task] for task in [run.config.task for run in runs]}
    return slugs, [_block(task, those, slugs) for task, those in by_task.items()]


def _block(task: str, runs: Sequence[RunRecord], slugs: Sequence[str]) -> Block:
    arms = {(slug, params.get("lam")): at for at, (slug, params) in enumerate(ARMS)}
    seeds = tuple(sorted({run.seed for run in runs}))
    isotropy = np.full((len(slugs), len(ARMS), len(seeds)), np.nan)
    every, collapsed = np.full((2, len(ARMS), len(seeds)), np.nan), np.zeros((len(ARMS), len(seeds)), bool)
    primary, idle = tasks.get(task).primary, set()
    for run in runs:
        strength = run.config.params["lam"] if run.config.method in STRENGTHS else None
        at = arms[run.config.method, strength], seeds.index(run.seed)
        idle |= {at[0]} if without_effect(run.config) else set()
        values = np.array([value_of(run.row, slug) for slug in slugs])
        isotropy[:, *at] = np.where(np.isin(slugs, FALLS), -values, values)
        every[:, *at] = [value_of(run.row, name) for name in (primary, f"{primary}_{SHIFT}")]
        collapsed[at] = run.row.collapsed is not None
    assert np.isfinite(isotropy).all() and runs[0].row.result is not None and runs[0].started is not None
    simple = max((value for value in runs[0].started.baselines.values() if value is not None), default=0.0)
    head = runs[0].row.result.isotropy.clouds["head"]
    scores = np.where(collapsed, np.nan, every)
    return Block(task, seeds, isotropy, every, scores, frozenset(idle), simple, head.n, head.d)


# ---------------------------------------------------------------------------------------------------- statistics


def unit_ranks(values: Array) -> Array:
    """Ranks along the last axis, with mean 0 and length 1, so that a sum of products is Spearman's ρ; 0 where nothing varies."""
    ranks = stats.rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2
    length = np.linalg.norm(ranks, axis=-1, keepdims=True)
    return np.divide(ranks, length, out=np.zeros_like(ranks), where=length > 0)


def agreement(parts: Sequence[Array]) -> Array:
    """(k, k) ρ of each two measures over the runs of a task (k, arms, seeds), mean over tasks."""
    ranked = [unit_ranks(part.reshape(len(part), -1)) for part in parts]
    return np.asarray(np.mean([ranks @ ranks.T for ranks in ranked], axis=0))


def across_arms(parts: Sequence[Array], orders: Array | None = None) -> Array:
    """(tasks, draws, k) ρ over the arms' means of the last entry of (k + 1, arms, seeds), the score, with each other.

    Args:
        orders: (draws, arms) how the scores' arms are permuted, in all tasks; one draw that changes nothing if None.
    """
    ranked = [unit_ranks(part.mean(axis=-1)) for part in parts]
    orders = np.arange(ranked[0].shape[-1])[None] if orders is None else orders
    return np.array([ranks[-1][orders] @ ranks[:-1].T for ranks in ranked])


def across_seeds(parts: Sequence[Array], orders: Sequence[Array] | None = None) -> Array:
    """(tasks, draws, k) ρ over the seeds of an arm, mean over arms, of the score with each measure; `orders` (draws, seeds) per task."""
    means = []
    for at, part in enumerate(parts):
        ranked, seeds = unit_ranks(part), np.arange(part.shape[-1])
        together = np.einsum("kas,at->kst", ranked[:-1], ranked[-1]) / part.shape[1]
        means.append(together[:, seeds, seeds[None] if orders is None else orders[at]].sum(axis=-1).T)
    return np.array(means)


def shuffled(count: int, rng: np.random.Generator) -> Array:
    """(draws, count) random orders."""
    return rng.permuted(np.tile(np.arange(count), (DRAWS, 1)), axis=1)


def resampled(statistic: Callable[[list[Array]], Array], parts: Sequence[Array], rng: np.random.Generator) -> Array:
    """(2, …) percentile ends of a statistic of the tasks' arrays (k, arms, seeds), with arms and each task's seeds drawn anew."""
    draws = []
    for _ in range(RESAMPLES):
        arms = rng.integers(0, parts[0].shape[1], parts[0].shape[1])
        seeds = [rng.integers(0, part.shape[2], part.shape[2]) for part in parts]
        draws.append(statistic([part[:, arms][:, :, drawn] for part, drawn in zip(parts, seeds, strict=True)]))
    return np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2], axis=0)


def p_values(observed: Array, null: Array) -> Array:
    """Two-sided, from the draws of a permutation test; the data count as one draw."""
    return np.asarray(((np.abs(null) >= np.abs(observed) - 1e-9).sum(axis=0) + 1) / (len(null) + 1))


def detectable(points: int, sets: int, tests: int) -> float:
    """The smallest ρ detected with 80 % power in Holm's first step, as the mean over independent sets of so many points."""
    reach = stats.norm.ppf(1 - ALPHA / 2 / tests) + stats.norm.ppf(0.8)
    return math.tanh(reach * math.sqrt(1.06 / (points - 3) / sets))


def reliability(scores: Array) -> float:
    """The share of the variance of the arms' means (arms, seeds) that is not noise; what a seed does to all arms is no noise."""
    apart = scores - scores.mean(axis=0)
    means = apart.mean(axis=1)
    noise = (
        float(((apart - means[:, None]) ** 2).sum()) / math.prod(size - 1 for size in scores.shape) / scores.shape[1]
    )
    return max(0.0, 1 - noise / float(means.var(ddof=1)))


# ---------------------------------------------------------------------------------------------------- the page


def arm_title(at: int) -> str:
    """`I-STAR, λ = −1`."""
    slug, params = ARMS[at]
    return ", ".join(filter(None, [method_title(slug), variant(slug, params)]))


def title_of(slug: str) -> str:
    """A measure's title or its shorter heading, with a mark where its sign was changed or left; on one line."""
    metric = metrics.catalogue()[slug]
    title = metric.title if len(metric.title) <= 20 else metric.heading
    mark = " (−)" if slug in FALLS else " (±)" if slug in AS_THEY_ARE else ""
    return f"{title}{mark}".replace(" ", "\N{NO-BREAK SPACE}")


def share(value: float, interval: Any = ()) -> str:
    """`−.42`, `−.42 [−.60, .10]`, on one line."""
    text = f"{value:.2f}".replace("-0.00", "0.00").replace("0.", ".").replace("-", "−").replace("1.00", "1")
    text = f"{text} [{', '.join(map(share, interval))}]" if len(interval) else text
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def tested_text(p: float, corrected: float) -> str:
    """`0.013 (0.48)`, on one line."""
    return f"{probability(p)} ({probability(corrected)})".replace(" ", "\N{NO-BREAK SPACE}")


def acting(found: Sequence[Block]) -> list[int]:
    """The arms whose method acts on every task."""
    return [at for at in range(len(ARMS)) if not any(at in block.idle for block in found)]


def usable(found: Sequence[Block]) -> tuple[list[Block], list[int]]:
    """The learned tasks, and the arms that act on all of them without a collapsed run."""
    learned = [block for block in found if block.learned]
    return learned, [at for at in acting(learned) if all(np.isfinite(block.scores[:, at]).all() for block in learned)]


def _tasks(words: str, found: Sequence[Block]) -> str:
    return f"{words} {len(found)} task{'s' * (len(found) != 1)}"


def runs_table(found: Sequence[Block]) -> Table:
    """What was run, and whether there is anything to predict."""
    _, arms = usable(found)
    header = ["task", "metric", "runs", "seeds", "n", "d", "best simple approach", "baseline", "baseline, typos"]
    header += ["learned", "collapsed runs", "reliability of arms", "reliability, typos"]
    notes = [
        "Simple approaches: bag of words and random weights for demo tasks, the most frequent class or the mean for the others. "
        f"Reliability: the share of the variance of the means of the {len(arms)} compared arms that is not noise of seeds. Near 0 there is "
        "nothing to predict."
    ]
    table = Table("The runs, by task", header, notes=notes)
    for block in found:
        seeds = len(block.seeds)
        means = [float(np.nanmean(scores[0])) if np.isfinite(scores[0]).any() else np.nan for scores in block.scores]
        facts = ["yes" if block.learned else "no", str(int(np.isnan(block.scores[0]).sum()))]
        reliable = [share(reliability(scores[arms])) if block.learned and seeds > 1 else "—" for scores in block.scores]
        sizes = [f"{value}" for value in (len(ARMS) * seeds, seeds, block.n, block.d)]
        levels = [number(value) for value in (block.simple, *means)]
        table.rows.append([task_title(block.task), tasks.get(block.task).primary, *sizes, *levels, *facts, *reliable])
    return table


def agreeing(slugs: Sequence[str], found: Sequence[Block]) -> tuple[list[str], list[list[str]]]:
    """Question 1; ρ of each measure with each other, with its interval, as text."""
    arms = acting(found)
    arrays = [block.isotropy[:, arms] for block in found]
    rho, (low, high) = agreement(arrays), resampled(agreement, arrays, np.random.default_rng(0))
    measures = range(len(slugs))
    cells = [
        [f"{share(rho[row, at])} [{share(low[row, at])}, {share(high[row, at])}]" for at in measures]
        for row in measures
    ]
    clear = [at for at, slug in enumerate(slugs) if slug not in AS_THEY_ARE]
    pairs = [(row, at) for row in clear for at in clear if at < row]
    strong, above = (sum(low[pair] > limit for pair in pairs) for limit in (0.5, 0))
    against = [f"{title_of(slugs[at])} and {title_of(slugs[row])}" for row, at in pairs if high[row, at] < 0]
    words = (
        f"Agreement of {len(pairs)} pairs of measures with a direction: {strong} strong (interval above .5), {above - strong} weaker "
        f"(above 0), {len(against)} negative (below 0){': ' if against else ''}{'; '.join(against)}, "
        f"{len(pairs) - above - len(against)} open."
    )
    return [words], cells


def agreement_table(found: Mapping[str, tuple[Sequence[str], list[list[str]]]]) -> Table:
    """The first scale below the diagonal, the second above it. Values: measures and what `agreeing` gives of them."""
    slugs, *others = (slugs for slugs, _ in found.values())
    assert all(each == slugs for each in others), "the scales have different measures"
    places = dict(zip(found, ("below the diagonal", "above it"), strict=False))
    title = "Spearman's ρ of each two measures over the runs of the arms that act on all tasks, mean of tasks, with 95 % interval"
    table = Table(
        f"{title}: {', '.join(f'{model} {place}' for model, place in places.items())}",
        ["", *map(str, range(1, len(slugs) + 1))],
    )
    (_, lower), *upper = found.values()
    for row, slug in enumerate(slugs):
        above = upper[0][1][row][row + 1 :] if upper else [""] * (len(slugs) - row - 1)
        table.rows.append([f"{row + 1} {title_of(slug)}", *lower[row][:row], "", *above])
    return table


def predicting(slugs: Sequence[str], found: Sequence[Block]) -> Parts:
    """Question 2."""
    learned, arms = usable(found)
    if not learned or len(arms) < 7:
        return ["Prediction: too few learned tasks, or too few arms without a collapsed run."], []
    several = [at for at, block in enumerate(learned) if len(block.seeds) > 2]
    possible = math.prod(math.factorial(len(learned[at].seeds)) for at in several) * ALPHA > 2 * len(slugs)
    p = np.full((3, 2, len(slugs)), np.nan)  # one sign on all tasks, any sign on each, across seeds
    by_task, means, seeds_rho = np.zeros((2, len(slugs), len(learned))), [], np.full((2, len(slugs)), np.nan)
    for which in range(2):
        parts = [np.concatenate([block.isotropy, block.scores[which : which + 1]])[:, arms] for block in learned]
        rng = np.random.default_rng(which)
        rho, null = across_arms(parts), across_arms(parts, shuffled(len(arms), rng))
        by_task[which] = rho[:, 0].T
        low, high = resampled(lambda drawn: across_arms(drawn)[:, 0].mean(axis=0), parts, rng)
        means.append(
            [share(*each) for each in zip(by_task[which].mean(axis=1), zip(low, high, strict=True), strict=True)]
        )
        p[0, which] = p_values(rho.mean(axis=0), null.mean(axis=0))
        p[1, which] = p_values((rho**2).mean(axis=0), (null**2).mean(axis=0))
        if several:
            chosen = [parts[at] for at in several]
            orders = [shuffled(part.shape[2], rng) for part in chosen]
            seeds_rho[which] = across_seeds(chosen)[:, 0].mean(axis=0)
            p[2, which] = p_values(seeds_rho[which], across_seeds(chosen, orders).mean(axis=0))
    q = two_samples.holm(p.reshape(3, -1)).reshape(p.shape)
    kinds = ["across arms, one sign on all tasks", "across arms, any sign on each task", "across seeds of an arm"]
    words, tables = [], []
    for which, rows in enumerate(TEST_SETS):
        told = []
        for place, kind in enumerate(kinds if possible else kinds[:2]):
            values = [by_task[which].mean(axis=1)[:, None], by_task[which], seeds_rho[which][:, None]][place]
            names = [
                f"{title_of(slugs[at])} ({', '.join(map(share, values[at]))})"
                for at in np.flatnonzero(q[place, which] < ALPHA).tolist()
            ]
            told.append(f"{kind}: {', '.join(names) or 'no measure'}")
        mixed = int(((by_task[which] > 0).any(axis=1) & (by_task[which] < 0).any(axis=1)).sum())
        signs = (
            f" The sign of ρ differs between tasks for {mixed} of {len(slugs)} measures." if len(learned) > 1 else ""
        )
        words.append(f"Prediction on the {rows}, after correction: {'; '.join(told)}.{signs}")
        header = ["measure", *(task_title(block.task) for block in learned), "mean", "p (Holm)", "any sign: p (Holm)"]
        table = Table(
            f"ρ of each measure with the score on the {rows}, across {len(arms)} arms, and across seeds of an arm",
            [*header, "across seeds", "across seeds: p (Holm)"],
            notes=[f"Across seeds: on the tasks with three seeds or more, {len(several)} of {len(learned)}."],
        )
        for at, slug in enumerate(slugs):
            tested = [tested_text(p[k, which, at], q[k, which, at]) for k in range(3)]
            seeds = [share(seeds_rho[which, at]), tested[2]] if several else ["—"] * 2
            table.rows.append([title_of(slug), *map(share, by_task[which, at]), means[which][at], *tested[:2], *seeds])
        tables.append(table)
    hard, easy = (detectable(len(arms), sets, 2 * len(slugs)) for sets in (1, len(learned)))
    new = f"if a further task brings nothing new, of {share(easy)} if {_tasks('each of', learned)} is new evidence"
    left = ", ".join(arm_title(at) for at in range(len(ARMS)) if at not in arms)
    words.append(
        f"Power: across {len(arms)} arms, 80 % of such studies would detect a ρ of {share(hard)} between the arms' means, corrected"
        + (f", {new}. " if len(learned) > 1 else ". ")
        + "Weaker relations are not excluded."
        + ("" if possible else " So few seeds cannot show a relation across seeds after correction.")
        + (f" Left out, collapsed or equal to the baseline on a task: {left}." if left else "")
    )
    return words, tables


def moving(slugs: Sequence[str], found: Sequence[Block]) -> Parts:
    """Question 3."""
    learned = [block for block in found if block.learned and len(block.seeds) > 2]
    if not learned:
        return ["Direction: fewer than three seeds, so no change can be told from chance."], []
    common = sorted(set.intersection(*(set(block.seeds) for block in learned)))
    rows: list[tuple[list[str], list[Array]]] = []
    shifts: dict[int, list[Array]] = {}
    for arm, slug in MOVED.items():
        changes = []
        for block in learned:
            values = np.concatenate([block.isotropy[[slugs.index(slug)]], 100 * block.scores])
            changes.append(values[:, arm] - values[:, 0])
        shifts[arm] = [change[0] for change in changes]
        names = [task_title(block.task) for block in learned]
        if len(learned) > 1 and len(common) > 2:
            places = [[block.seeds.index(seed) for seed in common] for block in learned]
            changes.append(np.mean([one[:, at] for one, at in zip(changes, places, strict=True)], axis=0))
            names.append("mean of tasks")
        for name, (moved, *scores) in zip(names, changes, strict=True):
            cell = f"{number(float(moved.mean()), sign=True)} ({(moved > 0).sum()} of {len(moved)})"
            finite = [score[np.isfinite(score)] for score in scores]
            rows.append(([arm_title(arm), name, metrics.catalogue()[slug].title, cell], finite))
    p = np.array([[float(two_samples.paired_t(one)) for one in scores] for _, scores in rows])
    q = two_samples.holm(p.ravel()).reshape(p.shape)
    table = Table(
        "An arm minus the baseline of the same seed: isotropy (and in how many seeds it rose), and score × 100, with 95 % interval",
        ["arm", "task", "measure", "change", "score", "p (Holm)", "at most", "score, typos", "p (Holm) ", "at most "],
        notes=["at most: the largest change, up or down, that equivalence tests at 5 % do not exclude."],
    )
    for (cells, scores), *tested in zip(rows, p, q, strict=True):
        for one, *chances in zip(scores, *tested, strict=True):
            interval = intervals.of_mean(one.tolist())
            if interval is None:
                cells += ["—"] * 3
                continue
            half = float(stats.t.ppf(1 - ALPHA, len(one) - 1)) * float(one.std(ddof=1)) / math.sqrt(len(one))
            text = f"{one.mean():+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]".replace("-", "−")
            cells += [text, tested_text(*map(float, chances)), f"{abs(float(one.mean())) + half:.1f}"]
        table.rows.append(cells)
    means = np.array([[one.mean() if len(one) else 0.0 for one in scores] for _, scores in rows])
    words = []
    for arm in MOVED:
        mine = [at for at, (cells, _) in enumerate(rows) if cells[0] == arm_title(arm)]
        up, down = (int(((q[mine] < ALPHA) & (sign * means[mine] > 0)).sum()) for sign in (1, -1))
        lost = sum(int(np.isnan(block.scores[0, arm]).sum()) for block in learned)
        signs = {float(np.sign(one)) for moved in shifts[arm] for one in moved}
        kind = {1.0: "more isotropic", -1.0: "less isotropic"}[signs.pop()] if len(signs) == 1 else "no clear move"
        tested = np.isfinite(q[mine]).sum()
        words.append(
            f"Direction: {arm_title(arm)} ({kind} by its own measure): {up} of {tested} scores higher than the baseline's and {down} "
            f"lower, after correction; {lost} runs collapsed and are left out."
        )
    return words, [table]


def body(file: Path = PACKED) -> str:
    """The section of the page: answers, then their tables."""
    short: list[str] = []
    evidence: list[str] = []
    agreements: dict[str, tuple[Sequence[str], list[list[str]]]] = {}
    with opened(file) as store:
        for model, group in GROUPS.items():
            if not store.list(group=group, limit=1):
                short.append(f"**{model}**: no runs yet; {len(SEEDS)} seeds are planned.")
                continue
            slugs, found = blocks(store, group)
            fewest = min(len(block.seeds) for block in found)
            plan = f" **{len(SEEDS)} seeds are planned for every task**; the table says how many ran."
            total = sum(len(ARMS) * len(block.seeds) for block in found)
            few = plan if fewest < len(SEEDS) else ""
            short.append(f"**{model}**: {total} runs, {len(ARMS)} arms {_tasks('on', found)}.{few}")
            evidence += [f"## {model}", f"Experiment *{group}*.", runs_table(found).markdown()]
            if max(len(block.seeds) for block in found) < 3:
                short.append(f"- {FEW}")
                continue
            agreed, cells = agreeing(slugs, found)
            agreements[model] = slugs, cells
            answers = [predicting(slugs, found), moving(slugs, found)]
            short.append("\n".join(f"- {literal(one)}" for one in [*agreed, *answers[0][0], *answers[1][0]]))
            evidence += [table.markdown() for _, tables in answers for table in tables]
            if any(np.isnan(block.scores).any() for block in found):
                counted = [replace(block, scores=block.every) for block in found]
                again = [*predicting(slugs, counted)[0], *moving(slugs, counted)[0]]
                evidence.append("**The same with the scores of collapsed runs, which leaving them out may flatter**")
                evidence.append("\n".join(f"- {literal(one)}" for one in again if one.startswith(("Pred", "Direct"))))
    together = ["## Which measures agree", agreement_table(agreements).markdown()] if agreements else []
    return "\n\n".join(["## In short", *short, *together, *evidence])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", metavar="FILE", type=Path, default=PACKED, help="the packed store")
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "docs")
    chosen = parser.parse_args()
    write_section(chosen.out / PAGE, SECTION, body(chosen.runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
