"""The catalogue of read-outs, and comparisons of two images of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts import cosines, labels, pairs, retrieval
from isoviz.readouts.heads import HeadRows
from isoviz.readouts.image import Image
from isoviz.readouts.pairs import RatedPairs
from isoviz.readouts.retrieval import Relevance
from isoviz.statistics.paired_bootstrap import Difference, Statistic, difference

Needs = Literal["head", "pairs", "queries", "labels", "nothing"]
Aim = Literal["up", "down", ""]


@dataclass(frozen=True)
class ReadOut:
    """One number that says how well vectors serve a purpose.

    Attributes:
        slug: its name in links and tables.
        title: its name on screen.
        needs: the annotations it requires.
        unit: what the bootstrap resamples, in the plural.
        help: a one-sentence description.
        slow: takes seconds, not milliseconds.
        aim: whether higher or lower is better; "" if neither is.
        compute: measures an image that has the annotations, for a read-out of an installed package. It must not depend on the axes:
            an image may be rotated.
    """

    slug: str
    title: str
    needs: Needs
    unit: str
    help: str
    slow: bool = False
    aim: Aim = "up"
    compute: Callable[[Image, Annotations], Statistic] | None = field(default=None, compare=False)


CATALOGUE: Final[dict[str, ReadOut]] = {
    one.slug: one
    for one in (
        ReadOut("spearman_cosine", "Spearman, cosine", "pairs", "pairs", "Rank correlation of the scores with the cosine."),
        ReadOut("pearson_cosine", "Pearson, cosine", "pairs", "pairs", "Linear correlation of the scores with the cosine."),
        ReadOut(
            "alignment",
            "Alignment",
            "pairs",
            "related pairs",
            "Mean squared distance on the unit sphere of pairs with at least 0.8 of the highest score. Read it beside uniformity.",
            aim="",
            compute=lambda image, annotations: pairs.alignment(image, annotations.pairs),  # type: ignore[arg-type]
        ),
        ReadOut("ndcg_cosine", "nDCG@10, cosine", "queries", "queries", "Graded relevance of the first 10 documents; 1 is ideal."),
        ReadOut("mrr_cosine", "MRR@10, cosine", "queries", "queries", "Mean of 1/place of the first relevant document."),
        ReadOut("recall1_cosine", "Recall@1, cosine", "queries", "queries", "Share of the relevant documents in first place."),
        ReadOut("recall10_cosine", "Recall@10, cosine", "queries", "queries", "Share of the relevant documents among the first 10."),
        ReadOut("recall100_cosine", "Recall@100, cosine", "queries", "queries", "Share of the relevant documents among the first 100."),
        ReadOut("knn", "k-NN accuracy", "labels", "rows", "Share of rows whose nearest other rows by cosine mostly have the same label."),
        ReadOut("probe", "Linear probe", "labels", "rows", "Accuracy of a tuned logistic regression, 5-fold cross-validated.", slow=True),
        ReadOut("frozen", "Frozen head", "head", "validation rows", "The run's own output layer, unchanged, on the transformed rows."),
        ReadOut(
            "refitted",
            "Refitted head",
            "head",
            "validation rows",
            "A new linear head, fitted on the transformed training rows; before: fitted and measured without transform.",
            slow=True,
        ),
        ReadOut("random_pairs", "Cosine, random pairs", "nothing", "rows", "Mean cosine of all pairs of at most 1,500 rows.", aim=""),
        ReadOut(
            "noise_floor",
            "Noise floor",
            "nothing",
            "rows",
            "The cosine that 99 % of the pairs of different rows stay below, without pairs that labels, ratings or relevance connect.",
            aim="",
            compute=lambda image, annotations: cosines.noise_floor(image, _connected(image, annotations)),
        ),
        ReadOut("nearest", "Cosine, nearest row", "nothing", "rows", "Mean cosine of each row with its nearest other row.", aim=""),
    )
}  # fmt: skip
"""In display order; `isoviz.readouts` adds those of installed packages."""


@dataclass(frozen=True)
class Labels:
    """Labels (m,) as codes from 0, of these rows (m,) of the image."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class Annotations:
    """Pairs, relevance and labels of an image's rows, or a run's head and labels. All are optional.

    Attributes:
        notes: sentences on what was left out, and why.
    """

    pairs: RatedPairs | None = None
    queries: Relevance | None = None
    labels: Labels | None = None
    head: HeadRows | None = None
    notes: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[Needs, ...]:
        """Annotations present, the most informative first. A run is judged by its head alone."""
        if self.head is not None:
            return ("head",)
        by_name: dict[Needs, object] = {"queries": self.queries, "pairs": self.pairs, "labels": self.labels}
        present = [name for name, value in by_name.items() if value is not None]
        return (*present, "nothing")

    def title_of(self, readout: ReadOut) -> str:
        """A read-out's name on screen, with the metric that a head is measured by."""
        return readout.title if self.head is None else f"{self.head.metric}, {readout.title.lower()}"


def applicable(annotations: Annotations, *, slow: bool | None = None) -> list[ReadOut]:
    """The read-outs that these annotations allow; `slow` restricts them to slow or quick ones."""
    return [
        readout
        for need in annotations.needs
        for readout in CATALOGUE.values()
        if readout.needs == need and slow in (None, readout.slow)
    ]


def measure(image: Image, annotations: Annotations, requested: Iterable[str] | None = None) -> dict[str, Statistic]:
    """The read-outs of an image by slug: the requested ones, or all that apply; a run's head is measured by its `HeadRows`."""
    slugs = {readout.slug for readout in applicable(annotations)} if requested is None else set(requested)
    statistics: dict[str, Statistic] = {}
    for need in annotations.needs:
        of_need = {slug for slug in slugs if CATALOGUE[slug].needs == need}
        if of_need:
            statistics |= _MEASURES[need](image, annotations, of_need)
            computed = {slug: CATALOGUE[slug].compute for slug in of_need}
            statistics |= {slug: compute(image, annotations) for slug, compute in computed.items() if compute}
    return {slug: statistics[slug] for slug in CATALOGUE if slug in slugs and slug in statistics}


def probe_stages(image: Image, of_rows: Labels) -> Generator[None, None, Statistic]:
    """The linear probe as a generator that yields several times a second."""
    return labels.probe_stages(_labelled(image, of_rows), of_rows.codes)


def _labelled(image: Image, of_rows: Labels) -> Image:
    return image if len(of_rows.rows) == image.n else Image(image.points[of_rows.rows])


def _labels(image: Image, annotations: Annotations, slugs: set[str]) -> dict[str, Statistic]:
    assert annotations.labels is not None
    codes, labelled = annotations.labels.codes, _labelled(image, annotations.labels)
    statistics: dict[str, Statistic] = {}
    if "knn" in slugs:
        statistics["knn"] = labels.neighbours(labelled, codes)
    if "probe" in slugs:
        statistics["probe"] = labels.probe(labelled, codes)
    return statistics


def _connected(image: Image, annotations: Annotations) -> NDArray[np.bool_]:
    """(m, m) which pairs of rows of `image.sample` the annotations connect: the same label, rated, or relevant."""
    m = len(image.sample)
    connected, place = np.zeros((m, m), bool), np.full(image.n, -1)
    place[image.sample] = np.arange(m)
    if annotations.labels is not None:
        codes = np.full(image.n, -1)
        codes[annotations.labels.rows] = annotations.labels.codes
        of_sample = codes[image.sample]
        connected |= (of_sample[:, None] == of_sample) & (of_sample >= 0)
    ends = [(annotations.pairs.left, annotations.pairs.right)] if annotations.pairs is not None else []
    if (search := annotations.queries) is not None:
        ends.append((search.queries[search.query], search.documents[search.document]))
    for left, right in ends:
        inside = (place[left] >= 0) & (place[right] >= 0)
        connected[place[left[inside]], place[right[inside]]] = True
    return connected


_MEASURES: Final[Mapping[Needs, Callable[[Image, Annotations, set[str]], dict[str, Statistic]]]] = {
    "pairs": lambda image, annotations, _: pairs.measure(image, annotations.pairs),  # type: ignore[arg-type]
    "queries": lambda image, annotations, _: retrieval.measure(image, annotations.queries),  # type: ignore[arg-type]
    "labels": _labels,
    "nothing": lambda image, _, slugs: cosines.measure(image) if slugs & {"random_pairs", "nearest"} else {},
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
    def gain(self) -> int:
        """1 for a significant gain, −1 for a significant loss, else 0."""
        change = {"higher": 1, "lower": -1}.get(self.difference.outcome, 0)
        return -change if self.readout.aim == "down" else change

    @property
    def verdict(self) -> str:
        """A sentence on what the interval shows. The interval covers other units, not another fit of the transform."""
        outcome, units = self.difference.outcome, f"{self.difference.n:,} {self.readout.unit}"
        sentences = {
            "undefined": f"Undefined{f': {reason}' if (reason := self.difference.reason) else f' on these {units}'}.",
            "no interval": f"Too few {self.readout.unit} for an interval.",
            "same": f"The same on these {units}.",
            "unclear": f"No difference detectable with these {units}.",
        }
        significant = f"Significantly {outcome} on these {units}; another fit of the transform may differ."
        return sentences.get(outcome, significant)


def compared(before: Mapping[str, Statistic], after: Mapping[str, Statistic]) -> list[Comparison]:
    """Comparisons of two measurements of the same rows, one per read-out."""
    return [
        Comparison(CATALOGUE[slug], before[slug].value, after[slug].value, difference(before[slug], after[slug]))
        for slug in after
        if slug in before
    ]


def compare(
    before: NDArray[np.floating],
    after: NDArray[np.floating],
    annotations: Annotations,
    requested: Iterable[str] | None = None,
) -> list[Comparison]:
    """Every read-out that applies, of the vectors (n, d) of the same rows before and (n, d') after a transform.

    The transform must have been fitted on other rows; for retrieval, on the documents.
    """
    slugs = None if requested is None else list(requested)
    return compared(measure(Image(before), annotations, slugs), measure(Image(after), annotations, slugs))
