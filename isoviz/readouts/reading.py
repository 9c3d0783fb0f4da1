"""The catalogue of read-outs, and two images of the same rows compared by those that apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts import cosines, labels, pairs, retrieval
from isoviz.readouts.image import Image
from isoviz.readouts.pairs import RatedPairs
from isoviz.readouts.retrieval import Relevance
from isoviz.statistics.paired_bootstrap import Difference, Statistic, difference

Needs = Literal["pairs", "queries", "labels", "nothing"]


@dataclass(frozen=True)
class ReadOut:
    """One number that says what vectors are good for.

    Attributes:
        slug: its name in links and tables.
        title: its name on screen.
        needs: what must be known of the rows.
        unit: what is drawn anew for its interval, in the plural.
        help: what it is, in a sentence.
        slow: takes seconds, not milliseconds.
        aim: whether it is meant to rise or to fall; "" where neither is a gain.
    """

    slug: str
    title: str
    needs: Needs
    unit: str
    help: str
    slow: bool = False
    aim: Literal["up", "down", ""] = "up"


def _both(slug: str, title: str, needs: Needs, unit: str, text: str, aim: Literal["up", "down", ""] = "up") -> Rows:
    return tuple(
        ReadOut(f"{slug}_{name}", f"{title}, {words}", needs, unit, text.format(words), aim=aim)
        for name, words in (("cosine", "cosine"), ("dot", "dot product"))
    )


Rows = tuple[ReadOut, ...]

CATALOGUE: Final[Mapping[str, ReadOut]] = {
    one.slug: one
    for one in (
        *_both("spearman", "Spearman", "pairs", "pairs", "Rank correlation of the scores with the {}."),
        *_both("pearson", "Pearson", "pairs", "pairs", "Linear correlation of the scores with the {}."),
        *_both("ndcg", "nDCG@10", "queries", "queries", "Graded relevance of the first 10 documents by {}; 1 is ideal."),
        *_both("mrr", "MRR@10", "queries", "queries", "Mean of 1/place of the first relevant document by {}."),
        *_both("recall1", "Recall@1", "queries", "queries", "Share of the relevant documents in first place by {}."),
        *_both("recall10", "Recall@10", "queries", "queries", "Share of the relevant documents among the first 10 by {}."),
        *_both(
            "recall100", "Recall@100", "queries", "queries", "Share of the relevant documents among the first 100 by {}."
        ),
        *_both(
            "hubness",
            "Hubness",
            "queries",
            "documents",
            "Skewness of how many queries have a document among their first 10 by {}. High: a few documents are found too often.",
            "down",
        ),
        *_both(
            "never",
            "Documents never found",
            "queries",
            "documents",
            "Share of the documents that no query has among its first 10 by {}.",
            "",
        ),
        ReadOut("knn", "k-NN accuracy", "labels", "rows", "Share of rows whose nearest other rows by cosine mostly share their label."),
        ReadOut("silhouette", "Silhouette", "labels", "rows", "Are rows closer to their own label than to another? −1 to 1, by cosine."),
        ReadOut("probe", "Linear probe", "labels", "rows", "Accuracy of a logistic regression, 5-fold cross-validated.", slow=True),
        ReadOut("nmi", "k-means NMI", "labels", "rows", "How well k-means recovers the labels: normalised mutual information.", slow=True),
        ReadOut("random_pairs", "Cosine, random pairs", "nothing", "rows", "Mean cosine of all pairs of at most 1,500 rows.", aim=""),
        ReadOut("nearest", "Cosine, nearest row", "nothing", "rows", "Mean cosine of each row with its nearest other row.", aim=""),
    )
}  # fmt: skip
"""In the order in which they are shown."""


@dataclass(frozen=True)
class Labels:
    """Labels (m,) as codes from 0, of these rows (m,) of the image."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What is known of the rows of an image. All of it is optional."""

    pairs: RatedPairs | None = None
    queries: Relevance | None = None
    labels: Labels | None = None

    @property
    def needs(self) -> tuple[Needs, ...]:
        """What it has, the most telling first."""
        having: dict[Needs, object] = {"queries": self.queries, "pairs": self.pairs, "labels": self.labels}
        known_of_rows = [name for name, value in having.items() if value is not None]
        return (*known_of_rows, "nothing")


def applicable(known: Known, *, slow: bool | None = None) -> list[ReadOut]:
    """The read-outs that such rows allow; `slow` keeps the quick ones or the slow ones."""
    return [one for need in known.needs for one in CATALOGUE.values() if one.needs == need and slow in (None, one.slow)]


def measure(image: Image, known: Known, wanted: Iterable[str] | None = None) -> dict[str, Statistic]:
    """The read-outs of an image by slug: those wanted, or all that apply."""
    slugs = {one.slug for one in applicable(known)} if wanted is None else set(wanted)
    statistics: dict[str, Statistic] = {}
    for need in known.needs:
        of_need = {slug for slug in slugs if CATALOGUE[slug].needs == need}
        if of_need:
            statistics |= _MEASURES[need](image, known, of_need)
    return {
        one.slug: statistics[one.slug] for one in CATALOGUE.values() if one.slug in slugs and one.slug in statistics
    }


def _labels(image: Image, known: Known, wanted: set[str]) -> dict[str, Statistic]:
    assert known.labels is not None
    rows, codes = known.labels.rows, known.labels.codes
    labelled = image if len(rows) == image.n else Image(image.points[rows])
    statistics: dict[str, Statistic] = {}
    if wanted & {"knn", "silhouette"}:
        statistics |= labels.neighbours_and_silhouette(labelled, codes)
    if "probe" in wanted:
        statistics["probe"] = labels.probe(labelled, codes)
    if "nmi" in wanted:
        statistics["nmi"] = labels.clusters(labelled, codes)
    return statistics


_MEASURES: Final[Mapping[Needs, Callable[[Image, Known, set[str]], dict[str, Statistic]]]] = {
    "pairs": lambda image, known, _: pairs.measure(image, known.pairs),  # type: ignore[arg-type]
    "queries": lambda image, known, wanted: retrieval.measure(image, known.queries, wanted),  # type: ignore[arg-type]
    "labels": _labels,
    "nothing": lambda image, _, __: cosines.measure(image),
}


@dataclass(frozen=True)
class Comparison:
    """One read-out before and after.

    Attributes:
        before, after: None where undefined.
        difference: after − before with its interval.
    """

    readout: ReadOut
    before: float | None
    after: float | None
    difference: Difference = field(repr=False)

    @property
    def verdict(self) -> str:
        """What the interval allows to say, in a sentence."""
        change, units = self.difference, f"{self.difference.n:,} {self.readout.unit}"
        if change.value is None:
            return f"Undefined on these {units}."
        if change.low is None or change.high is None:
            return f"Too few {self.readout.unit} for an interval."
        if change.low == change.high == 0:
            return f"The same on these {units}."
        if not change.excludes_zero:
            return f"No difference that these {units} can show."
        return f"{'Higher' if change.low > 0 else 'Lower'} by more than chance on these {units}."


def compared(before: Mapping[str, Statistic], after: Mapping[str, Statistic]) -> list[Comparison]:
    """Two measures of the same rows, read-out by read-out."""
    return [
        Comparison(CATALOGUE[slug], before[slug].value, after[slug].value, difference(before[slug], after[slug]))
        for slug in after
        if slug in before
    ]


def compare(
    before: NDArray[np.floating], after: NDArray[np.floating], known: Known, wanted: Iterable[str] | None = None
) -> list[Comparison]:
    """Every read-out that applies, of the vectors (n, d) of the same rows before and (n, d') after a transform.

    The transform must have been fitted on other rows; for retrieval, on the documents.
    """
    slugs = None if wanted is None else list(wanted)
    return compared(measure(Image(before), known, slugs), measure(Image(after), known, slugs))
