"""What vectors are good for, before and after a transform: similarity, search, labels, and what needs none of them.

    image.py       the vectors, and what several read-outs share
    pairs.py       pairs with similarity scores
    retrieval.py   queries, documents, relevance
    labels.py      labels
    cosines.py     nothing but the vectors
    reading.py     the catalogue, and two images compared with intervals and verdicts
    division.py    which rows fit the transform, which are shown, which are held back

Everything is of rows that the transform was not fitted on; intervals come from `isoviz.statistics.paired_bootstrap`.
"""

from __future__ import annotations

from isoviz.readouts.pairs import RatedPairs
from isoviz.readouts.reading import CATALOGUE, Comparison, Known, Labels, ReadOut, applicable, compare, measure
from isoviz.readouts.retrieval import Relevance

__all__ = [
    "CATALOGUE",
    "Comparison",
    "Known",
    "Labels",
    "RatedPairs",
    "ReadOut",
    "Relevance",
    "applicable",
    "compare",
    "measure",
]
