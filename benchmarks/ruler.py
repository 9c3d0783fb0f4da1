"""Do the ruler's intervals hold the truth of known populations?

    python benchmarks/ruler.py [--draws 400] [--out docs]

Each draw is new pairs of a population whose truth is known. docs/ruler.md also has what the ruler said of held-out pairs of STS-B and MRPC,
recorded by this script at commit d0e3266b.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _report import Table, machine, options, publish
from numpy.typing import NDArray

from isoviz.readouts.ruler import related
from isoviz.readouts.ruler.pairs import Relation, relation_of

Matrix = NDArray[np.float64]
Sample = tuple[Matrix, Matrix]
Draw = Callable[[int, np.random.Generator], Sample]
WANTED = 0.9
HELD = ("median of unrelated pairs", "noise floor, 99 %", "AUC", "precision of the threshold", "calibration error")


def main() -> None:
    """Print the table, and write it if asked."""
    parser = options(__doc__, out="ruler.md")
    parser.add_argument("--draws", type=int, default=400)
    chosen = parser.parse_args()
    about = machine(("numpy", "scipy"), "all of them")
    publish(chosen.out, "known populations", about, known_truth(chosen.draws), page="ruler.md")


def paired(left: Matrix, right: Matrix) -> tuple[Matrix, Relation]:
    """Rows of both sides, of which the k-th are related."""
    places = np.arange(len(left))
    relation = relation_of(np.stack([places, len(left) + places], axis=1), None, 2 * len(left))
    assert relation is not None
    return np.concatenate([left, right]), relation


def _error(ruler: Any, true: Matrix, false: Matrix, share: float) -> float:
    """Expected calibration error on pairs that the ruler has not seen, in ten groups of equal weight."""
    values = np.concatenate([true, false])
    predicted = np.interp(values, ruler.cosine, ruler.probability)
    weights = np.concatenate([np.full(len(true), share / len(true)), np.full(len(false), (1 - share) / len(false))])
    actual = np.concatenate([np.ones(len(true)), np.zeros(len(false))])
    order = np.lexsort((values, predicted))
    group = np.minimum((10 * (np.cumsum(weights[order]) - weights[order] / 2)).astype(int), 9)
    return float(np.abs(np.bincount(group, ((predicted - actual) * weights)[order], 10)).sum())


# -------------------------------------------------------------------------------------------------- known populations

D = 24


def _twins(m: int, rng: np.random.Generator, noise: float = 0.7, base: Matrix | None = None) -> Sample:
    base = rng.normal(size=(m, D)) * np.linspace(2, 0.3, D) + 0.6 if base is None else base
    return base + noise * rng.normal(size=base.shape), base + noise * rng.normal(size=base.shape)


def _topics(m: int, rng: np.random.Generator) -> Sample:
    centres = 1.5 * np.random.default_rng(99).normal(size=(20, D))
    return _twins(m, rng, 1.2, centres[rng.integers(20, size=m)] + rng.normal(size=(m, D)))


def _plateau(m: int, rng: np.random.Generator) -> Sample:
    """A thousandth of the unrelated pairs are as similar as related ones."""
    centres = 2 * np.random.default_rng(98).normal(size=(1_000, D))
    return _twins(m, rng, 0.5, centres[rng.integers(1_000, size=m)])


def _heavy(m: int, rng: np.random.Generator) -> Sample:
    base = rng.standard_t(3, size=(m, D)) * np.linspace(2, 0.3, D) + 0.6 * np.abs(rng.standard_t(3, size=(m, 1)))
    left, right = (base + 0.7 * rng.standard_t(3, size=base.shape) for _ in range(2))
    wrong = rng.random(m) < 0.1
    right[wrong] = _twins(int(wrong.sum()), rng)[0]
    return left, right


def _hubs(m: int, rng: np.random.Generator) -> Sample:
    return _twins(m, rng, 0.8, rng.normal(size=(m, D)) + 0.5 * np.exp(0.8 * rng.normal(size=(m, 1))))


def _ties(m: int, rng: np.random.Generator) -> Sample:
    words = rng.random((m, 12)) < 0.35
    left, right = ((words ^ (rng.random(words.shape) < 0.08)).astype(float) for _ in range(2))
    left[:, 0] = right[:, 0] = 1
    return left, right


def _repeated(m: int, rng: np.random.Generator, noise: float = 0.0) -> Sample:
    """One to five pairs with one left text, or with nearly the same."""
    text = np.repeat(np.arange(m), rng.integers(1, 6, size=m))[:m]
    base = (rng.normal(size=(m, D)) * np.linspace(2, 0.3, D) + 0.6)[text]
    left, right = _twins(m, rng, 0.9, base)
    return left[np.searchsorted(text, text)] + noise * rng.normal(size=base.shape), right


POPULATIONS: dict[str, tuple[Draw, int, float]] = {
    "15 pairs": (_twins, 15, 0.5),
    "100 pairs": (_twins, 100, 0.5),
    "1 % related": (_twins, 100, 0.01),
    "20 topics": (_topics, 60, 0.5),
    "1 in 1,000 mistaken, 1 % related": (_plateau, 150, 0.01),
    "heavy tails, 1 in 10 mismatched": (_heavy, 100, 0.5),
    "hubs": (_hubs, 40, 0.5),
    "ties": (_ties, 60, 0.5),
    "texts in up to 5 pairs": (_repeated, 100, 0.5),
    "nearly the same texts in up to 5 pairs": (partial(_repeated, noise=0.05), 100, 0.5),
}
"""How pairs are drawn, how many, and the share related."""


def known_truth(draws: int) -> Table:
    """How often the ruler's intervals hold the truth."""
    title = f"Known populations: 95 % intervals that hold the truth; {draws} draws"
    table = Table(title, ["population", "pairs", *HELD])
    for name, population in POPULATIONS.items():
        shares = coverage(*population, draws)
        table.rows.append([name, str(population[1]), *(f"{100 * shares[one]:.1f} %" for one in HELD)])
    table.notes.append(f"Standard error of 95 %, in percentage points: {100 * np.sqrt(0.05 * 0.95 / draws):.1f}.")
    return table


def coverage(draw: Draw, m: int, share: float, draws: int) -> dict[str, float]:
    """The share of draws of m pairs in which each interval holds the truth; of the precision, among those with a threshold."""
    unrelated, true = _truth(draw)
    ends = (np.searchsorted(unrelated, true, side=side).mean() for side in ("left", "right"))
    auc = float(sum(ends) / (2 * len(unrelated)))
    levels = [float(np.quantile(unrelated, level)) for level in (0.5, 0.99)]
    held: list[list[float]] = []
    for seed in range(draws):
        generator = np.random.default_rng(seed)
        points, relation = paired(*draw(m, generator))
        judged = related.judge(points, relation, generator)
        ruler = related.measure_related(points, relation, share, WANTED, generator)

        of_floor = [_holds(judged.level(level), truth) for level, truth in zip((0.5, 0.99), levels, strict=True)]
        precision = np.nan
        if (found := ruler.threshold) is not None:
            hits, alarms = (1 - np.searchsorted(values, found.cosine) / len(values) for values in (true, unrelated))
            precision = _holds(found, share * hits / (share * hits + (1 - share) * alarms))
        error = _error(ruler, true[::20], unrelated[::200], share)
        held.append(
            [*of_floor, ruler.auc[1] <= auc <= ruler.auc[2], precision, ruler.error[1] <= error <= ruler.error[2]]
        )
    return dict(zip(HELD, np.nanmean(np.array(held, float), axis=0).tolist(), strict=True))


def _holds(interval: Any, truth: float) -> bool:
    return bool(interval.low - 1e-9 <= truth <= interval.high + 1e-9)  # ties differ by rounding


def _truth(draw: Draw) -> Sample:
    """Cosines of many unrelated and related pairs, sorted."""
    rng = np.random.default_rng(12345)
    unrelated, true = [], []
    for _ in range(12):
        left, right = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in draw(3_000, rng))
        true.append(np.einsum("ij,ij->i", left, right))
        unrelated += [np.einsum("ij,ij->i", left, np.roll(right, 7 * k, axis=0)) for k in range(1, 40)]
    return np.sort(np.concatenate(unrelated)), np.sort(np.concatenate(true))


if __name__ == "__main__":
    main()
