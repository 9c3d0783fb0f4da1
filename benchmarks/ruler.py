"""Does the ruler hold on other pairs, does it say so where nothing separates, and how much does the noise floor depend on the protocol?

    python benchmarks/ruler.py --model DIR --stsb DIR --mrpc DIR --squad DIR [--splits 100] [--out docs]

DIR of a set holds a train file with the column names of the Hugging Face data sets. Related are STS-B's pairs from score 4, MRPC's
paraphrases, and SQuAD's questions with their paragraphs (one question each; too few to be split). Each split draws `FITTED` pairs for the
ruler and judges it on all others. Bars: a threshold's precision on the others within its interval in 93 of 100 splits; of pairs matched
at random, "no threshold separates these" in 95 of 100.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import Table, machine, options, publish
from numpy.typing import NDArray

from isoviz import cosines
from isoviz.cosines import related
from isoviz.cosines.floor import Floor
from isoviz.cosines.sides import sides_of
from isoviz.models.extract import encode

Matrix = NDArray[np.float64]
FITTED = 300
SHARES = (0.5, 0.01)
WANTED = 0.9
MOST = 1_500
"""Pairs of a set."""
HELD, HONEST = 0.93, 0.95


def main() -> int:
    """0 if both bars are met."""
    parser = options(__doc__, out="ruler.md")
    for name in ("model", "stsb", "mrpc", "squad"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="DIR")
    parser.add_argument("--splits", type=int, default=100)
    chosen = parser.parse_args()
    texts = {"STS-B": _stsb(chosen.stsb), "MRPC": _mrpc(chosen.mrpc), "SQuAD": _squad(chosen.squad)}
    sets = {name: tuple(_points(str(chosen.model), side) for side in sides) for name, sides in texts.items()}
    header = [
        "pairs",
        "n",
        "share related",
        "precision in its interval",
        "threshold",
        "their calibration error",
        "as the ruler said",
        "random pairs: nothing separates",
    ]
    table = Table(
        f"{FITTED} pairs for the ruler, the others judge it; {chosen.splits} splits; wanted precision {WANTED:g}",
        header,
    )
    good = True
    for name, (left, right) in sets.items():
        for share in SHARES if len(left) > 2 * FITTED else ():
            row, met = _held_out(left, right, chosen.splits, share)
            table.rows.append([name, f"{len(left):,}", f"{share:g}", *row])
            good &= met
    about = f"all-MiniLM-L6-v2. {machine(('numpy', 'scipy', 'torch', 'sentence-transformers'), 'all of them')}"
    publish(chosen.out, "coverage", about, table, _protocol(sets), page="ruler.md")
    return 0 if good else 1


def _stsb(folder: Path) -> tuple[list[str], list[str]]:
    frame = _read(folder)
    label = "score" if "score" in frame else "label"
    top = frame[frame[label] >= 0.8 * frame[label].max()]
    return top["sentence1"].tolist()[:MOST], top["sentence2"].tolist()[:MOST]


def _mrpc(folder: Path) -> tuple[list[str], list[str]]:
    frame = _read(folder)
    same = frame[frame["label"] == 1]
    return same["sentence1"].tolist()[:MOST], same["sentence2"].tolist()[:MOST]


def _squad(folder: Path) -> tuple[list[str], list[str]]:
    frame = _read(folder).drop_duplicates("context")
    return frame["question"].tolist()[:MOST], frame["context"].tolist()[:MOST]


def _read(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "train.parquet")


def _points(model: str, texts: list[str]) -> Matrix:
    return np.asarray(encode(model, texts), dtype=np.float64)


def _held_out(left: Matrix, right: Matrix, splits: int, share: float) -> tuple[list[str], bool]:
    values = (left / np.linalg.norm(left, axis=1, keepdims=True)) @ (
        right / np.linalg.norm(right, axis=1, keepdims=True)
    ).T
    within = honest = found = 0
    errors: list[float] = []
    said: list[float] = []
    thresholds: list[float] = []
    for split in range(splits):
        generator = np.random.default_rng(split)
        order = generator.permutation(len(left))
        mine, others = order[:FITTED], order[FITTED:]
        points = np.concatenate([left[mine], right[mine]])
        relation = np.stack([np.arange(FITTED), FITTED + np.arange(FITTED)], axis=1)
        ruler = related.measure_related(points, relation, share, WANTED, generator)
        judged = values[np.ix_(others, others)]
        true, false = np.diag(judged), judged[~np.eye(len(others), dtype=bool)]
        if ruler.threshold is not None:
            found += 1
            hits, misses = (true >= ruler.threshold.cosine).mean(), (false >= ruler.threshold.cosine).mean()
            precision = share * hits / (share * hits + (1 - share) * misses)
            within += ruler.threshold.low <= precision <= ruler.threshold.high
            thresholds.append(ruler.threshold.cosine)
        errors.append(_error(ruler, true, false, share))
        said.append(ruler.error[0])
        shuffled = np.concatenate([left[mine], right[generator.permutation(mine)]])
        honest += related._permuted(shuffled, relation, generator) > related.ALPHA
    threshold = f"{np.mean(thresholds):.3f} ± {np.std(thresholds):.3f}" if thresholds else ""
    error = f"{np.mean(errors):.3f} ± {np.std(errors):.3f}"
    row = [
        f"{within} of {found}",
        threshold,
        error,
        f"{np.mean(said):.3f}",
        f"{honest} of {splits}",
    ]
    return row, within >= HELD * found and honest >= HONEST * splits


def _error(ruler: Any, true: Matrix, false: Matrix, share: float) -> float:
    """Expected calibration error on pairs that the ruler has not seen, in ten groups of equal weight."""
    predicted = np.interp(np.concatenate([true, false]), ruler.cosine, ruler.probability)
    weights = np.concatenate([np.full(len(true), share / len(true)), np.full(len(false), (1 - share) / len(false))])
    actual = np.concatenate([np.ones(len(true)), np.zeros(len(false))])
    order = np.argsort(predicted, kind="stable")
    group = np.minimum((10 * (np.cumsum(weights[order]) - weights[order] / 2)).astype(int), 9)
    return float(np.abs(np.bincount(group, ((predicted - actual) * weights)[order], 10)).sum())


def _protocol(sets: dict[str, tuple[Matrix, ...]]) -> Table:
    """The floor of one model by what counts as an unrelated pair."""
    generator = np.random.default_rng(0)
    table = Table(
        "The noise floor of one model: 99 % of unrelated pairs lie below",
        ["unrelated pairs", "rows", "floor", "95 % interval"],
    )

    def add(name: str, points: Matrix, relation: Any = None) -> None:
        sides = sides_of(relation, len(points), generator, cosines.MOST_ROWS)
        floor = Floor(sides.cosines(points), ~sides.known(relation) & ~sides.same).level(0.99)
        table.rows.append([name, f"{sides.count:,}", f"{floor.cosine:.3f}", f"{floor.low:.3f} to {floor.high:.3f}"])

    for name, (left, right) in sets.items():
        m = len(left)
        both, pairs = np.concatenate([left, right]), np.stack([np.arange(m), m + np.arange(m)], axis=1)
        add(f"{name}: left with right", both, pairs)
        add(f"{name}: left with left", left)
        few = generator.choice(m, 100, replace=False)
        add(f"{name}: left with left, 100 of them", left[few])
    for one, other in (("STS-B", "MRPC"), ("STS-B", "SQuAD")):
        a, b = sets[one][0], sets[other][0]
        sides = np.concatenate([a, b])
        across = np.stack([np.arange(min(len(a), len(b))), len(a) + np.arange(min(len(a), len(b)))], axis=1)
        add(f"{one} with {other}", sides, across)
    table.notes.append("Cosines do not depend on whether vectors are normalised before; dot products do.")
    return table


if __name__ == "__main__":
    sys.exit(main())
