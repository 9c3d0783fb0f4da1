"""How often the read-outs' verdicts report a difference where there is none, and how often their intervals cover the truth.

    python benchmarks/readout_errors.py [--draws 400] [--fitted 250] [--processes 1] [--out docs]

Every draw makes a new data set, so that the truth is known: no difference, or the mean difference over all draws. Writes the
section of docs/readouts.md. tests/statistics/test_false_positives.py runs the same simulations with fewer draws.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np
from _report import Table, machine, options, publish
from numpy.typing import NDArray

from isoviz import posthoc, readouts
from isoviz.readouts import Annotations, Labels, RatedPairs, Relevance, cosines, labels
from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Difference, difference, interval

Points = NDArray[np.float64]
Map = Callable[[Points], Points]
Differences = dict[str, Difference]

D: Final = 16
SPREAD: Final = np.geomspace(2.0, 0.4, D)
ROWS, PAIRS, QUERIES, DOCUMENTS, FIT = 150, 150, 80, 300, 100
CENTRES: Final = SPREAD * np.random.default_rng(1).normal(size=(3, D))
"""Of the three labels."""
NEEDS: Final = ("labels", "pairs", "queries", "nothing")
CROSSED: Final = {
    "probe": "Linear probe, cross-validated over all rows",
    "knn": "k-NN accuracy, cross-validated over all rows",
}
OVERLAP: Final = "Nearest neighbours that stay"
CATALOGUE: Final = {slug: one for slug, one in readouts.CATALOGUE.items() if one.needs != "head"}
"""Read-outs of any vectors. A run's heads have the same bootstrap."""
FITTED: Final = ("probe", *CROSSED.values())
"""Read-outs that fit many linear heads, simulated with fewer draws."""
OTHERS: Final = (*(slug for slug in CATALOGUE if slug not in FITTED), OVERLAP)


class Data:
    """A new data set: points (n, D), their annotations, and the points that a transform is fitted on."""

    def __init__(self, needs: str, rng: np.random.Generator) -> None:
        self.fit = cloud(FIT, rng)
        if needs == "pairs":
            left = cloud(PAIRS, rng)
            right = 0.6 * left + 0.8 * cloud(PAIRS, rng)
            score = np.einsum("ij,ij->i", left / SPREAD, right / SPREAD) + 2 * rng.normal(size=PAIRS)
            rows = np.arange(PAIRS)
            self.points = np.concatenate([left, right])
            self.annotations = Annotations(pairs=RatedPairs(rows, PAIRS + rows, np.round(score)))
        elif needs == "queries":
            documents = cloud(DOCUMENTS, rng)
            relevant = np.stack([rng.choice(DOCUMENTS, 3, replace=False) for _ in range(QUERIES)])
            queries = documents[relevant].mean(axis=1) + 0.5 * SPREAD * rng.normal(size=(QUERIES, D))
            self.points, self.fit = np.concatenate([queries, documents]), documents
            grades = np.tile([3.0, 2.0, 1.0], QUERIES)
            self.annotations = Annotations(
                queries=Relevance(
                    np.arange(QUERIES),
                    QUERIES + np.arange(DOCUMENTS),
                    np.repeat(np.arange(QUERIES), 3),
                    relevant.ravel(),
                    grades,
                )
            )
        else:
            codes = rng.integers(0, len(CENTRES), ROWS)
            self.points = cloud(ROWS, rng) + CENTRES[codes]
            self.annotations = Annotations(labels=Labels(np.arange(ROWS), codes) if needs == "labels" else None)


def cloud(n: int, rng: np.random.Generator) -> Points:
    """Points whose spread differs between directions, away from the origin."""
    return np.asarray(0.3 + SPREAD * rng.normal(size=(n, D)))


def noise(points: Points, rng: np.random.Generator) -> Points:
    """A perturbation that has the same distribution in every call."""
    return np.asarray(points + 0.4 * SPREAD * rng.normal(size=points.shape))


def fitted(points: Points) -> Map:
    """The transform whose effect is measured."""
    return posthoc.zca(strength=0.7).fit(points).transform


FIXED: Final[Map] = fitted(cloud(20_000, np.random.default_rng(0)))


def equal_noise(data: Data, rng: np.random.Generator) -> tuple[Points, Points]:
    """Two perturbations of the same vectors, neither better than the other."""
    return noise(data.points, rng), noise(data.points, rng)


def two_fits(data: Data, rng: np.random.Generator) -> tuple[Points, Points]:
    """The same transform, fitted on two halves of the rows."""
    halves = np.array_split(rng.permutation(data.fit), 2)
    return fitted(halves[0])(data.points), fitted(halves[1])(data.points)


def fresh_rows(data: Data, rng: np.random.Generator) -> tuple[Points, Points]:
    """No transform against one that never changes."""
    return data.points, FIXED(data.points)


def fresh_fits(data: Data, rng: np.random.Generator) -> tuple[Points, Points]:
    """No transform against one that is fitted anew in every draw."""
    return data.points, fitted(data.fit)(data.points)


Setting = Callable[[Data, np.random.Generator], tuple[Points, Points]]
NULL: Final[Sequence[Setting]] = (equal_noise, two_fits)
"""Settings without a true difference."""
REAL: Final[Sequence[Setting]] = (fresh_rows, fresh_fits)


def draw(seed: int, setting: Setting, names: frozenset[str]) -> Differences:
    """The differences of these read-outs on one new data set of each kind."""
    rng = np.random.default_rng([seed, *setting.__name__.encode()])
    result: Differences = {}
    for needs in NEEDS:
        data = Data(needs, rng)
        before, after = setting(data, rng)
        slugs = [slug for slug, one in CATALOGUE.items() if one.needs == needs and slug in names]
        if slugs:
            compared = readouts.compare(before, after, data.annotations, slugs)
            result |= {comparison.readout.slug: comparison.difference for comparison in compared}
        if needs == "labels" and setting in REAL and not names.isdisjoint(CROSSED.values()):
            assert data.annotations.labels is not None
            fit: Callable[[Any], Map] = fitted if setting is fresh_fits else lambda points: FIXED
            crossed = labels.finished(labels.crossed_stages(data.points, data.annotations.labels.codes, fit))
            result |= {CROSSED[slug]: difference(*pair) for slug, pair in crossed.items()}
        if needs == "nothing" and setting in REAL and OVERLAP in names:
            result[OVERLAP] = interval(cosines.overlap(Image(before), Image(after)))
    return result


def rates(setting: Setting, draws: int, names: Collection[str], processes: int = 1) -> dict[str, float]:
    """By read-out: the share of draws with a verdict of a difference (`NULL`), or whose interval covers the truth (`REAL`)."""
    one = partial(draw, setting=setting, names=frozenset(names))
    if processes == 1:
        results = [one(seed) for seed in range(draws)]
    else:
        with ProcessPoolExecutor(processes) as pool:
            results = list(pool.map(one, range(draws), chunksize=10))
    shares = {}
    for name in results[0]:
        differences = [result[name] for result in results if result[name].low is not None]
        truth = 0.0 if setting in NULL else float(np.mean([one.value for one in differences]))  # type: ignore[misc]
        outside = float(np.mean([not one.low <= truth <= one.high for one in differences]))  # type: ignore[operator]
        shares[name] = outside if setting in NULL else 1 - outside
    return shares


def table(draws: int, fitted_draws: int, processes: int) -> Table:
    """False alarms and coverage of every read-out."""
    result = Table(
        "False alarms at 5 % and coverage of 95 % intervals",
        [
            "read-out",
            "draws",
            "alarms: equal noise",
            "alarms: two fits",
            "coverage: new rows",
            "coverage: new rows and fit",
        ],
    )
    by_name: dict[str, list[str]] = {}
    for names, count in ((OTHERS, draws), (FITTED, fitted_draws)):
        by_setting = [rates(setting, count, names, processes) for setting in (*NULL, *REAL)]
        for name in names:
            cells = [f"{100 * shares[name]:.1f} %" if name in shares else "—" for shares in by_setting]
            by_name[name] = [f"{count:,}", *cells]
    for name in [*CATALOGUE, *CROSSED.values(), OVERLAP]:
        result.rows.append([CATALOGUE[name].title if name in CATALOGUE else name, *by_name[name]])
    errors = " and ".join(f"{100 * np.sqrt(0.05 * 0.95 / n):.1f} with {n:,} draws" for n in (draws, fitted_draws))
    result.notes.append(f"Standard error of a rate of 5 % or 95 %, in percentage points: {errors}.")
    return result


def main() -> None:
    """Simulate, print, and write the section if asked."""
    parser = options(__doc__, out="readouts.md")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--fitted", type=int, default=250, help="draws of the linear probe and of cross-validation")
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args()
    result = table(chosen.draws, chosen.fitted, chosen.processes)
    stamp = machine(["numpy", "scipy", "scikit-learn"], "1 thread per process")
    publish(chosen.out, "readout errors", result, stamp, page="readouts.md")


if __name__ == "__main__":
    main()
