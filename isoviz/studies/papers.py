"""The four papers reproduced by the studies, each with its tables and figures in the order of print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from isoviz.errors import unknown_name
from isoviz.methods.isobn import IsoBN
from isoviz.methods.isolayer import IsoLayer
from isoviz.methods.istar import IStar
from isoviz.parameters import Paper

CALIBRATION: Final = Paper(
    short="Ding et al. 2022",
    title="On Isotropy Calibration of Transformer Models",
    year=2022,
    bibtex="""@inproceedings{ding2022isotropy,
  title={On Isotropy Calibration of Transformer Models},
  author={Ding, Yue and Martinkus, Karolis and Pascual, Damian and Clematide, Simon and Wattenhofer, Roger},
  booktitle={Proceedings of the Third Workshop on Insights from Negative Results in NLP},
  pages={1--9},
  year={2022}
}""",
)
"""No method of the catalogue is from this paper, which compares methods of others."""


@dataclass(frozen=True)
class Place:
    """One table or figure of a paper: what it is called there, and what it shows in a few words."""

    name: str
    shows: str


@dataclass(frozen=True)
class Source:
    """One paper.

    Attributes:
        slug: as in `isoviz.studies.published.PAPERS`.
        name: common name, by its method or question.
        paper: citation.
        places: its tables and figures with measured content, in the order of print.
    """

    slug: str
    name: str
    paper: Paper
    places: tuple[Place, ...]


def _paper(paper: Paper | None) -> Paper:
    assert paper is not None
    return paper


PAPERS: Final = (
    Source(
        "isolayer",
        "IsoLayer",
        _paper(IsoLayer.paper),
        (
            Place("Table 2", "performance and IsoScore with and without the IsoLayer"),
            Place("Figure 2", "explained variance of the first principal components"),
            Place("Table 3", "performance and explained variance beside IsoBN, 5 seeds"),
        ),
    ),
    Source(
        "istar",
        "I-STAR",
        _paper(IStar.paper),
        (
            Place("Figure 2", "IsoScore* of small samples for each ζ"),
            Place("Table 1", "performance of CosReg and I-STAR on nine tasks"),
            Place("Figure 3", "IsoScore* against performance"),
            Place("Figure 4", "mean activation of each dimension under CosReg"),
            Place("Figure 5", "TwoNN intrinsic dimension of each layer"),
            Place("Figure 6", "IsoScore* of each layer for λ < 0 and λ > 0"),
            Place("Figure 7", "performance against the shrinkage ζ"),
            Place("Figure 8", "performance with the penalty on one layer"),
            Place("Table 2", "the λ and ζ chosen for each task"),
        ),
    ),
    Source(
        "isobn",
        "IsoBN",
        _paper(IsoBN.paper),
        (
            Place("Figure 1", "standard deviation of each dimension before fine-tuning"),
            Place("Figure 2", "correlation of the dimensions before fine-tuning"),
            Place("Figure 3", "the correlation that batch normalisation and IsoBN assume"),
            Place("Table 1", "performance on seven tasks, 5 seeds"),
            Place("Table 2", "explained variance with no normalisation, BN and IsoBN"),
            Place("Figure 4", "explained variance against the number of components"),
        ),
    ),
    Source(
        "calibration",
        "Isotropy calibration",
        CALIBRATION,
        (
            Place("Table 1", "performance of four calibration methods on nine tasks"),
            Place("Table 2", "translation: BLEU, isotropy and time per epoch"),
            Place("Table 3", "summarization: ROUGE-1, isotropy and time per epoch"),
            Place("Table 4", "isotropy I1 and I2 of Table 1's models"),
            Place("Table 5", "summarization in full"),
        ),
    ),
)
"""Papers in menu order."""


def get(slug: str) -> Source:
    """The paper of that name; `InputError` with the allowed names otherwise."""
    for source in PAPERS:
        if source.slug == slug:
            return source
    raise unknown_name("paper", slug, [source.slug for source in PAPERS], field="paper")


def every_place() -> list[tuple[Source, Place]]:
    """All tables and figures, in the order of print."""
    return [(source, place) for source in PAPERS for place in source.places]


def place_names(text: str) -> tuple[str, ...]:
    """`Figures 1, 2 and 4, Table 2` → Figure 1, Figure 2, Figure 4, Table 2; a range (`Figures 3–5`) is every number in it."""
    names: list[str] = []
    for kind, numbers in re.findall(r"(Figure|Table)s?\s+(\d+(?:\s*(?:,|and|–|-)\s*\d+)*)", text):
        for first, last in re.findall(r"(\d+)(?:\s*[–-]\s*(\d+))?", numbers):
            names += [f"{kind} {number}" for number in range(int(first), int(last or first) + 1)]
    return tuple(names)
