"""How often the statistics of our tables find a difference where there is none, and how often their intervals cover the truth.

    python benchmarks/false_positives.py [--draws 10000] [--out docs]

Writes the section of docs/statistics.md; ten minutes on one core. tests/statistics/test_false_positives.py holds the same
simulations to their bounds with fewer draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from _report import Table, machine, options, publish

from isoviz.statistics import intervals, two_samples
from isoviz.statistics.rank_correlation import rank_correlation

ALPHA = 0.05
SEEDS = (3, 5, 10)

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.beta(20, 2, size=shape)


def _rounded(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.binomial(277, 0.7, size=shape) / 277


SCORES: Mapping[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed (β(20, 2), near the ceiling)": _skewed,
    "accuracy on 277 rows": _rounded,
}
"""How scores are spread over seeds."""
MEANS: Mapping[str, float] = {
    "normal": 0.0,
    "skewed (β(20, 2), near the ceiling)": 20 / 22,
    "accuracy on 277 rows": 0.7,
}


def rate(p: np.ndarray) -> float:
    """Share of the tables whose p is below α; a test that could not be made finds nothing."""
    return float(np.mean(np.nan_to_num(p, nan=1.0) < ALPHA))


def paired(kind: str, n: int, draws: int, rng: np.random.Generator) -> float:
    """t-test of pairs that share a part, as seeds share their data order."""
    shared = rng.normal(size=(draws, n)) if kind == "normal" else 0.0
    one, two = (SCORES[kind](rng, (draws, n)) + shared for _ in range(2))
    return rate(two_samples.paired_t(one - two))


def welch(kind: str, n: int, ratio: float, draws: int, rng: np.random.Generator) -> float:
    """Welch's test of samples of equal mean, one of which spreads `ratio` times as much."""
    one, two = (SCORES[kind](rng, (draws, n)) - MEANS[kind] for _ in range(2))
    return rate(two_samples.welch_t(one, ratio * two))


def familywise(
    methods: int, n: int, against_baseline: bool, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The chance of at least one false finding in a table of paired t-tests: without a correction, and with Holm's."""
    scores = rng.normal(size=(draws, methods, n)) + rng.normal(size=(draws, 1, n))
    first, second = np.triu_indices(methods, 1)
    if against_baseline:
        first, second = np.zeros(methods - 1, dtype=int), np.arange(1, methods)
    p = two_samples.paired_t(scores[:, second] - scores[:, first])
    return rate(p.min(axis=-1)), rate(two_samples.holm(p).min(axis=-1))


def rank(settings: int, tasks: int, draws: int, rng: np.random.Generator) -> float:
    """Permutation test of unrelated numbers whose levels differ between tasks, by far and in the same direction."""
    names = np.repeat(np.arange(tasks), settings)
    rejected = []
    for _ in range(draws):
        x, y = (10.0 * names + rng.normal(size=len(names)) for _ in range(2))
        p = rank_correlation(x, y, names.tolist()).p
        rejected.append(1.0 if p is None else p)
    return rate(np.array(rejected))


def mean_coverage(kind: str, n: int, draws: int, rng: np.random.Generator, resamples: int = 1000) -> dict[str, float]:
    """Coverage of 95 % intervals of a mean: ours, and two bootstrap intervals that we do not use."""
    values, truth = SCORES[kind](rng, (draws, n)), MEANS[kind]
    ours = [intervals.of_mean(row) for row in values]
    means = values.mean(axis=1)
    order = np.sort(values[:, rng.integers(0, n, size=(resamples, n))].mean(axis=2), axis=1)
    return {
        "Student's t": float(
            np.mean([interval is not None and interval.low <= truth <= interval.high for interval in ours])
        ),
        "percentile bootstrap": _covers(order, np.full(draws, 0.025), np.full(draws, 0.975), truth),
        "BCa bootstrap": _covers(order, *_bca(values, means, order), truth),
    }


def _covers(order: np.ndarray, low: np.ndarray, high: np.ndarray, truth: float) -> float:
    rows, last = np.arange(len(order)), order.shape[1] - 1
    ends = [order[rows, np.rint(np.clip(share, 0, 1) * last).astype(int)] for share in (low, high)]
    return float(np.mean((ends[0] <= truth) & (truth <= ends[1])))


def _bca(values: np.ndarray, means: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares at which BCa cuts its draws (Efron 1987)."""
    from scipy.stats import norm

    below = (order < means[:, None]).mean(axis=1) + 0.5 * (order == means[:, None]).mean(axis=1)
    shift = norm.ppf(np.clip(below, 1e-6, 1 - 1e-6))
    away = values - means[:, None]
    sizes = (away**2).sum(axis=1) ** 1.5
    pull = np.divide((away**3).sum(axis=1), 6 * sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    ends = (shift + sign * norm.ppf(0.975) for sign in (-1, 1))
    low, high = (norm.cdf(shift + end / (1 - pull * end)) for end in ends)
    return low, high


def rank_coverage(settings: int, strength: float, draws: int, rng: np.random.Generator) -> float:
    """How often the bootstrap's 95 % interval covers Spearman's ρ of a normal pair with that correlation."""
    truth = 6 / np.pi * np.arcsin(strength / 2)
    x = rng.normal(size=(draws, settings))
    y = strength * x + np.sqrt(1 - strength**2) * rng.normal(size=(draws, settings))
    found = [rank_correlation(one, two).interval for one, two in zip(x, y, strict=True)]
    return float(np.mean([interval is not None and interval.low <= truth <= interval.high for interval in found]))


# ------------------------------------------------------------------------------------------ tables


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def tests(draws: int, rng: np.random.Generator) -> Table:
    """False-positive rates of the two-sample tests."""
    table = Table("False positives of single tests at 5 %", ["test and scores", *(f"n = {n}" for n in SEEDS)])
    for kind in SCORES:
        cells = [_percent(paired(kind, n, draws, rng)) for n in SEEDS]
        table.rows.append([f"paired t, {kind}", *cells])
    for kind in SCORES:
        for ratio in (1, 2, 4):
            cells = [_percent(welch(kind, n, ratio, draws, rng)) for n in SEEDS]
            table.rows.append([f"Welch, {kind}, spreads 1 : {ratio}", *cells])
    return table


def tables(draws: int, rng: np.random.Generator) -> Table:
    """Familywise error rates of complete tables."""
    table = Table(
        "At least one false finding in a table of paired t-tests, uncorrected → after Holm",
        ["table", *(f"n = {n}" for n in SEEDS)],
    )
    for words, methods, against in (
        ("9 methods against the baseline's", 9, True),
        ("all pairs of 5 methods", 5, False),
        ("all pairs of 9 methods", 9, False),
    ):
        rates = [familywise(methods, n, against, draws, rng) for n in SEEDS]
        table.rows.append([words, *(f"{_percent(plain)} → {_percent(holm)}" for plain, holm in rates)])
    return table


def correlations(draws: int, rng: np.random.Generator) -> Table:
    """Permutation tests and intervals of rank correlations."""
    table = Table("Rank correlations: false positives at 5 %", ["settings", "draws", "Spearman"])
    for settings, tasks, share in ((5, 1, 1.0), (7, 1, 1.0), (21, 1, 0.2), (7, 3, 0.2)):
        count = max(200, int(share * draws))
        words = f"{settings} settings, {tasks} task{'s whose levels differ' if tasks > 1 else ''}"
        table.rows.append([words, f"{count:,}", _percent(rank(settings, tasks, count, rng))])
    return table


def coverage(draws: int, rng: np.random.Generator) -> list[Table]:
    """How often the intervals cover."""
    count = max(500, draws // 5)
    means = Table(f"Coverage of 95 % intervals of a mean, {count:,} draws", ["scores, n", *_KINDS])
    for kind in SCORES:
        for n in (3, 5, 10, 20):
            rates = mean_coverage(kind, n, count, rng)
            means.rows.append([f"{kind}, {n}", *(_percent(rates[name]) for name in _KINDS)])
    count = max(100, draws // 50)
    ranks = Table(
        f"Coverage of the bootstrap's 95 % interval of Spearman's ρ, {count:,} draws",
        ["settings", *(f"correlation {strength:g}" for strength in _STRENGTHS)],
    )
    for settings in (7, 21):
        cells = [_percent(rank_coverage(settings, strength, count, rng)) for strength in _STRENGTHS]
        ranks.rows.append([str(settings), *cells])
    return [means, ranks]


_KINDS = ("Student's t", "percentile bootstrap", "BCa bootstrap")
_STRENGTHS = (0.0, 0.5, 0.8)


def main() -> None:
    """Simulate, print, and write the section if asked."""
    parser = options(__doc__, out="statistics.md")
    parser.add_argument("--draws", type=int, default=10_000)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    sections = [tests(chosen.draws, rng), tables(chosen.draws, rng), correlations(chosen.draws, rng)]
    sections += coverage(chosen.draws, rng)
    stamp = f"{chosen.draws:,} draws where nothing else is said, seed 0. {machine(['numpy', 'scipy'], '1 thread')}"
    publish(chosen.out, "false positives", stamp, *sections, page="statistics.md")


if __name__ == "__main__":
    main()
