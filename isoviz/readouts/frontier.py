"""How small vectors can be stored: dimensions × bits × a rotation first, judged on a set's questions, or else on neighbours kept.

    found = frontier(points, annotations)
    print(found.sentence)

Transforms are fitted on the documents, or on all rows; they see no question and no label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.formatting import decimals
from isoviz.metrics.cloud import draw, float64_matrix
from isoviz.metrics.copies import nonzero_rows
from isoviz.readouts import retrieval
from isoviz.readouts.cosines import NEIGHBOURS, shares_kept
from isoviz.readouts.image import Image
from isoviz.readouts.reading import Annotations
from isoviz.statistics import front
from isoviz.statistics.paired_bootstrap import Difference, Mean, Statistic, difference

MOST_ROWS: Final = 20_000
"""Most rows without questions."""
MOST_QUERIES: Final = 1_000
NEIGHBOUR_QUERIES: Final = 300
"""Evenly spaced rows whose neighbours among all rows are compared, as on the page without a server."""
MARGIN: Final = 0.01
BITS: Final = {32: "float32", 8: "int8", 4: "4 bits", 1: "binary"}
ROTATIONS: Final = {"none": "as they are", "pca": "PCA", "whitening": "PCA, whitened", "rotation": "random rotation"}
MEASURES: Final = {"ndcg_cosine": "nDCG@10", "recall10_cosine": "recall@10", "neighbours": "recall@10 of neighbours"}
TEN_MILLION: Final = 10_000_000


@dataclass(frozen=True)
class Stored:
    """One way to store a vector.

    Attributes:
        rotation, bits, dimensions: keys of `ROTATIONS` and `BITS`, and the first dimensions that are kept.
        values: the measures by slug, of `MEASURES`.
        changes: the same minus those of the vectors as they are, paired by question or row.
    """

    rotation: str
    bits: int
    dimensions: int
    values: dict[str, float | None] = field(default_factory=dict)
    changes: dict[str, Difference] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return -(-self.dimensions * self.bits // 8)

    @property
    def words(self) -> str:
        return f"{ROTATIONS[self.rotation]}, {self.dimensions:,} dimensions, {BITS[self.bits]}"

    def cells(self, judged: Sequence[str]) -> list[str]:
        """Its line in a table: words, bytes, gigabytes for ten million, and each measure with its change."""
        texts = []
        for slug in judged:
            change = self.changes[slug]
            value, low, high = (decimals(one, 3, sign=True) for one in (change.value, change.low, change.high))
            texts.append(f"{decimals(self.values[slug])}, {value} ({low} to {high})")
        return [self.words, f"{self.bytes:,}", f"{self.bytes * TEN_MILLION / 1e9:.3g}", *texts]

    def steps(self) -> list[tuple[str, dict[str, Any]]]:
        """Slugs and parameters of the transforms."""
        kept: list[tuple[str, dict[str, Any]]] = [("truncation", {"keep": self.dimensions})]
        if self.rotation in ("pca", "whitening"):
            kept = [("pca_whitening", {"components": self.dimensions, "strength": float(self.rotation == "whitening")})]
        coded = {32: [], 1: [("binary", {"centre": True})]}.get(self.bits, [("quantisation", {"bits": self.bits})])
        return [*([("rotation", {})] if self.rotation == "rotation" else []), *kept, *coded]

    def chain(self) -> posthoc.Chain:
        """The transforms, not fitted."""
        return posthoc.chain(getattr(posthoc, slug)(**params) for slug, params in self.steps())

    def python(self, source: str) -> str:
        """Code that stores vectors in this way; `source` is an expression for them."""
        calls = [
            (slug, ", ".join(f"{name}={value}" for name, value in params.items())) for slug, params in self.steps()
        ]
        steps = "".join(f"    posthoc.{slug}({arguments}),\n" for slug, arguments in calls)
        return (
            f"import numpy as np\n\nfrom isoviz import posthoc\n\nvectors = {source}\nchain = posthoc.chain([\n{steps}]).fit(vectors)\n"
            "compressed = chain.transform(vectors)  # and every query, by the same chain\n"
        )


@dataclass(frozen=True)
class Frontier:
    """All ways, from the smallest.

    Attributes:
        ways: of a set with these dimensions `d`.
        judged: slugs of the measures, the decisive one first.
        units: questions or rows that it is judged on; rows that they search among.
        margin: largest loss that counts as harmless.
    """

    ways: list[Stored]
    d: int
    judged: list[str]
    units: int
    rows: int
    margin: float

    @property
    def smallest(self) -> Stored | None:
        """The smallest that loses at most the margin: the interval's lower end is above minus the margin. Of several the simplest."""
        first = self.judged[0]
        harmless = [one for one in self.ways if (low := one.changes[first].low) is not None and low >= -self.margin]
        return min(harmless, key=lambda one: (one.bytes, list(ROTATIONS).index(one.rotation)), default=None)

    @property
    def pareto(self) -> list[Stored]:
        """Those with a higher value than every smaller one, smallest first."""
        return [
            self.ways[place] for place in front([(-one.bytes, one.values[self.judged[0]] or 0.0) for one in self.ways])
        ][::-1]

    @property
    def sentence(self) -> str:
        """The headline."""
        name, points = MEASURES[self.judged[0]], f"{100 * self.margin:g} point{'' if self.margin == 0.01 else 's'}"
        what = "questions" if self.judged[0] != "neighbours" else "rows"
        on = f"on {self.units:,} {what} among {self.rows:,} {'documents' if what == 'questions' else 'rows'}"
        best, full = self.smallest, 4 * self.d
        if best is None or best.bytes >= full:
            start = f"float32 in {self.d:,} dimensions ({full:,} bytes)"
            return f"Nothing smaller than {start} is shown to lose at most {points} of {name}, {on}."
        change = best.changes[self.judged[0]]
        assert change.value is not None and change.low is not None and change.high is not None
        value, low, high = (decimals(100 * one, 1, sign=True) for one in (change.value, change.low, change.high))
        size = f"{full / best.bytes:.3g} times smaller; {best.bytes * TEN_MILLION / 1e9:.3g} GB for ten million"
        return (
            f"Smallest that loses at most {points} of {name}: {best.words}. {best.bytes:,} bytes per vector instead of {full:,} ({size}), "
            f"{value} points, {low} to {high}, {on}."
        )


def frontier(
    points: NDArray[Any],
    annotations: Annotations | None = None,
    margin: float = MARGIN,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> Frontier:
    """Every way to store these vectors (n, d), with what it costs.

    Differences are paired and have 95 % intervals (`isoviz.statistics.paired_bootstrap`). The smallest of many is chosen, which is
    optimistic: check it on questions that were not used.

    Args:
        annotations: with queries, these are the questions.
        margin: largest loss that counts as harmless.

    Raises:
        InputError: a margin outside [0, 1), or fewer than 12 rows that are not zero.
    """
    if not 0 <= margin < 1:
        raise InputError.at("margin", f"must be at least 0 and below 1 (got {margin:g})")
    search = None if annotations is None else annotations.queries
    queries, fitted, judge = _neighbours(points) if search is None else _questions(points, search)
    count, every = len(queries), float64_matrix(np.asarray(points[np.concatenate([queries, fitted])]))
    if len(fitted) < NEIGHBOURS + 2:
        found = f"at least {NEIGHBOURS + 2} rows that are not zero are needed, got {len(fitted)}"
        raise InputError.at("vectors", found)
    d, start, ways = every.shape[1], judge(every), list[Stored]()
    for rotation in ROTATIONS:
        turned = np.asarray(Stored(rotation, 32, d).chain().fit(every[count:]).transform(every))
        for bits in BITS:
            progress(len(ways), len(ROTATIONS) * len(BITS) * len(widths(d)), "compressing")
            coded = np.asarray(Stored("none", bits, d).chain().fit(turned[count:]).transform(turned))
            for k in widths(d):
                after = judge(coded[:, :k])
                changes = {name: difference(start[name], one) for name, one in after.items()}
                ways.append(Stored(rotation, bits, k, {name: one.value for name, one in after.items()}, changes))
    judged = list(start)
    ways.sort(key=lambda one: (one.bytes, -(one.values[judged[0]] or 0)))
    return Frontier(ways, d, judged, start[judged[0]].n, len(fitted), margin)


def widths(d: int) -> list[int]:
    """d, then halves down to 8: at most four."""
    return [d >> half for half in range(4) if not half or d >> half >= 8]


Rows = NDArray[np.int64]
Judge = Callable[[NDArray[Any]], dict[str, Statistic]]


def _questions(points: NDArray[Any], search: retrieval.Relevance) -> tuple[Rows, Rows, Judge]:
    """Rows of the queries and of the documents, and what judges the vectors of both."""
    answered = np.flatnonzero([len(of_query) > 0 for of_query, _ in search.graded])
    asked = answered[draw(len(answered), MOST_QUERIES)]
    kept, count = np.isin(search.query, asked), len(asked)
    of_query = np.searchsorted(asked, search.query[kept])
    documents = count + np.arange(len(search.documents))
    relevance = retrieval.Relevance(np.arange(count), documents, of_query, search.document[kept], search.grade[kept])

    def judge(rows: NDArray[Any]) -> dict[str, Statistic]:
        found = retrieval.measure(Image(rows), relevance)
        return {slug: one for slug, one in found.items() if slug in MEASURES}

    return search.queries[asked], search.documents, judge


def _neighbours(points: NDArray[Any]) -> tuple[Rows, Rows, Judge]:
    """No queries, all rows, and what judges how many neighbours of some of these are kept."""
    kept = nonzero_rows(points)
    kept = kept[draw(len(kept), MOST_ROWS)]
    count = min(NEIGHBOUR_QUERIES, len(kept))
    some = np.arange(count) * len(kept) // count
    truth: list[NDArray[np.float32]] = []

    def judge(rows: NDArray[Any]) -> dict[str, Statistic]:
        unit = Image(rows).unit
        scores = unit[some] @ unit.T
        scores[np.arange(count), some] = -np.inf
        truth.append(scores) if not truth else None
        return {"neighbours": Mean(shares_kept(truth[0], scores))}

    return kept[:0], kept, judge
