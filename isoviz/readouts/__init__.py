"""Read-outs: how well vectors serve similarity, search and labels, before and after a transform.

    image.py       the vectors, and intermediate results that read-outs share
    pairs.py       pairs with similarity scores
    retrieval.py   queries, documents, relevance
    encoders.py    encoders compared on one search
    labels.py      labels
    heads.py       a run's own output layer, and a refitted one
    cosines.py     the vectors alone
    ruler/         what a cosine means for an encoder
    reading.py     the catalogue, and comparisons with intervals and verdicts
    division.py    the rows that fit the transform, those shown, and those held back

All read-outs use rows that the transform was not fitted on; intervals come from `isoviz.statistics.paired_bootstrap`.
"""

from __future__ import annotations

from isoviz.catalogues import installed
from isoviz.readouts.pairs import RatedPairs
from isoviz.readouts.reading import CATALOGUE, Annotations, Comparison, Labels, ReadOut, applicable, compare, measure
from isoviz.readouts.retrieval import Relevance

__all__ = [
    "CATALOGUE",
    "Annotations",
    "Comparison",
    "Labels",
    "RatedPairs",
    "ReadOut",
    "Relevance",
    "applicable",
    "compare",
    "measure",
]

# last, because another package's module imports the names above
CATALOGUE.update(installed("isoviz.readouts", ReadOut, listed_as="READ_OUTS", taken=CATALOGUE))
