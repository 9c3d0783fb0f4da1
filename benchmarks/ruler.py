"""Does the ruler hold on other pairs and on known populations, does it say where nothing separates, and what moves the noise floor?

    python benchmarks/ruler.py --model DIR --stsb DIR --mrpc DIR --squad DIR [--splits 400] [--draws 400] [--out docs]

DIR of a set holds a train file with the column names of the Hugging Face data sets. Related are STS-B's pairs from score 4, MRPC's
paraphrases, and SQuAD's questions with their paragraphs (one question each; too few to be split). Each split draws `FITTED` pairs for the
ruler and judges it on the others; each draw is new pairs of a population whose truth is known. Bars: a threshold's precision on the others
agrees, with the noise of both, in 93 % of splits; of pairs matched at random, "no threshold separates these" in 95 %.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import Table, machine, options, publish
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import norm

from isoviz import cosines
from isoviz.cosines import related
from isoviz.cosines.pairs import Relation, pairs_of, relation_of
from isoviz.models.extract import encode

Matrix = NDArray[np.float64]
Sample = tuple[Matrix, Matrix]
Draw = Callable[[int, np.random.Generator], Sample]
FITTED = 300
SHARES = (0.5, 0.01)
WANTED = 0.9
MOST = 1_500
"""Pairs of a set."""
COLUMNS = (
    "thresholds",
    "precision agrees",
    "others' estimate in the interval",
    "expected of it",
    "threshold",
    "others' calibration error",
    "as the ruler said",
    "random pairs: nothing separates",
)
ENOUGH, HONEST = 0.93, 0.95
HELD = ("median of unrelated pairs", "noise floor, 99 %", "AUC", "precision of the threshold", "calibration error")


def main() -> int:
    """0 if both bars are met."""
    parser = options(__doc__, out="ruler.md")
    for name in ("model", "stsb", "mrpc", "squad"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="DIR")
    parser.add_argument("--splits", type=int, default=400)
    parser.add_argument("--draws", type=int, default=400)
    chosen = parser.parse_args()
    frames = _frames(chosen.stsb, chosen.mrpc, chosen.squad)
    encoded = partial(_points, str(chosen.model))
    sets = {name: (encoded(frame["left"]), encoded(frame["right"])) for name, frame in frames.items()}
    table = Table(
        f"{FITTED} pairs for the ruler, the others judge it; {chosen.splits} splits; wanted precision {WANTED:g}",
        ["pairs", "n", "share related", *COLUMNS],
    )
    good = True
    for name, (left, right) in sets.items():
        for share in SHARES if len(left) > 2 * FITTED else ():
            row, met = _held_out(left, right, chosen.splits, share)
            table.rows.append([name, f"{len(left):,}", f"{share:g}", *row])
            good &= met
    raw = encoded(frames["STS-B"]["left"], pooling="mean")
    about = f"all-MiniLM-L6-v2. {machine(('numpy', 'scipy', 'torch', 'sentence-transformers'), 'all of them')}"
    floors = _protocol(sets, raw, frames["SQuAD"]["title"].to_numpy())
    publish(chosen.out, "coverage", about, table, known_truth(chosen.draws), floors, page="ruler.md")
    return 0 if good else 1


def _frames(*folders: Path) -> dict[str, pd.DataFrame]:
    """Related texts as columns `left` and `right`."""
    stsb, mrpc, squad = (pd.read_parquet(folder / "train.parquet") for folder in folders)
    score = stsb["score" if "score" in stsb else "label"]
    related_pairs = {
        "STS-B": stsb[score >= 0.8 * score.max()],
        "MRPC": mrpc[mrpc["label"] == 1],
        "SQuAD": squad.drop_duplicates("context").rename(columns={"question": "sentence1", "context": "sentence2"}),
    }
    names = {"sentence1": "left", "sentence2": "right"}
    return {name: frame.rename(columns=names).head(MOST) for name, frame in related_pairs.items()}


def _points(model: str, texts: pd.Series, **options: Any) -> Matrix:
    return np.asarray(encode(model, texts.tolist(), **options), dtype=np.float64)


def paired(left: Matrix, right: Matrix) -> tuple[Matrix, Relation]:
    """Rows of both sides, of which the k-th are related."""
    places = np.arange(len(left))
    relation = relation_of(np.stack([places, len(left) + places], axis=1), None, 2 * len(left))
    assert relation is not None
    return np.concatenate([left, right]), relation


# ------------------------------------------------------------------------------------------------------ held-out pairs


def _held_out(left: Matrix, right: Matrix, splits: int, share: float) -> tuple[list[str], bool]:
    agree = within = honest = 0
    thresholds: list[float] = []
    errors: list[tuple[float, ...]] = []
    for split in range(splits):
        generator = np.random.default_rng(split)
        order = generator.permutation(len(left))
        mine, others = order[:FITTED], order[FITTED:]
        points, relation = paired(left[mine], right[mine])
        ruler = related.measure_related(points, relation, share, WANTED, generator)
        judged = related.judge(*paired(left[others], right[others]), generator)
        if (found := ruler.threshold) is not None:
            estimate = judged.precision(found.cosine, share)
            within += found.low <= estimate[0] <= found.high
            agree += _agree((found.precision, found.low, found.high), estimate)
            thresholds.append(found.cosine)
        errors.append((_error(ruler, judged.related, judged.unrelated, share), *ruler.error))
        shuffled = np.concatenate([left[mine], right[generator.permutation(mine)]])
        honest += related.permuted(shuffled, relation.pairs, generator) > related.ALPHA
    actual, said, low, high = np.array(errors).T
    count = len(thresholds)
    row = [
        f"{count} of {splits}",
        f"{100 * agree / count:.1f} %",
        f"{100 * within / count:.1f} %",
        f"{100 * _expected(FITTED, len(left) - FITTED):.1f} %",
        f"{np.mean(thresholds):.3f} ± {np.std(thresholds):.3f}",
        f"{actual.mean():.4f} ± {actual.std():.4f}",
        f"{said.mean():.4f} ({low.mean():.4f} to {high.mean():.4f})",
        f"{100 * honest / splits:.1f} %",
    ]
    return row, agree >= ENOUGH * count and honest >= HONEST * splits


def _agree(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether the interval of the difference of two independent estimates, on the logit scale, includes 0."""
    (low_value, _, low_end), (high_value, high_end, _) = sorted((logit(one), logit(other)), key=lambda ends: ends[0])
    return bool(high_value - low_value <= np.hypot(low_end - low_value, high_value - high_end))


def _expected(fitted: int, others: int) -> float:
    """How often an estimate from `others` pairs lies in an exact 95 % interval for the population from `fitted` pairs."""
    return float(1 - 2 * norm.sf(norm.ppf(0.975) / np.sqrt(1 + fitted / others)))


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
    table = Table(
        f"Known populations: 95 % intervals that hold the truth; {draws} draws", ["population", "pairs", *HELD]
    )
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


# ------------------------------------------------------------------------------------------------------------ protocol


def _protocol(sets: dict[str, Sample], raw: Matrix, titles: NDArray[Any]) -> Table:
    """The floor of one model by what counts as an unrelated pair."""
    generator = np.random.default_rng(0)
    table = Table(
        "The noise floor of one model: 99 % of unrelated pairs lie below",
        ["unrelated pairs", "rows", "floor", "95 % interval"],
    )

    def add(name: str, points: Matrix, relation: Relation | None = None, only: Any = True) -> None:
        pairs = pairs_of(points, relation, generator, cosines.MOST_ROWS)
        floor = replace(pairs, unrelated=pairs.unrelated & only).cosines(points).level(0.99)
        table.rows.append([name, f"{pairs.count:,}", f"{floor.cosine:.3f}", f"{floor.low:.3f} to {floor.high:.3f}"])

    for name, (left, right) in sets.items():
        add(f"{name}: left with right", *paired(left, right))
        add(f"{name}: left with left", left)
        add(f"{name}: left with left, 100 of them", left[generator.choice(len(left), 100, replace=False)])
    add("STS-B: left with left, not normalised by the model", raw)
    same = titles[:, None] == titles
    add("SQuAD: questions on the same article", sets["SQuAD"][0], only=same)
    add("SQuAD: questions on different articles", sets["SQuAD"][0], only=~same)
    for one, other in (("STS-B", "MRPC"), ("STS-B", "SQuAD")):
        m = min(len(sets[one][0]), len(sets[other][0]))
        add(f"{one} with {other}", *paired(sets[one][0][:m], sets[other][0][:m]))
    return table


if __name__ == "__main__":
    sys.exit(main())
