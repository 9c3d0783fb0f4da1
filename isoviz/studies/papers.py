"""The four papers reproduced by the studies, each with its tables and figures in the order of print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from isoviz import methods
from isoviz.errors import unknown_name
from isoviz.parameters import Paper

CALIBRATION: Final = Paper(
    "Ding et al. 2022",
    """@inproceedings{ding2022isotropy,
  title={On Isotropy Calibration of Transformer Models},
  author={Ding, Yue and Martinkus, Karolis and Pascual, Damian and Clematide, Simon and Wattenhofer, Roger},
  booktitle={Proceedings of the Third Workshop on Insights from Negative Results in NLP},
  pages={1--9},
  year={2022}
}""",
)
"""No method of the catalogue is from this paper, which compares methods of others."""


@dataclass(frozen=True)
class Source:
    """One paper.

    Attributes:
        slug: of its method, or its question; the first word of its studies' slugs, and its name in `published.csv`.
        name: common name, by its method or question.
        number: its number in our notes.
        places: its tables and figures with measured content, in the order of print.
    """

    slug: str
    name: str
    number: str
    places: tuple[str, ...]

    @property
    def paper(self) -> Paper:
        """The citation."""
        method = methods.find(self.slug)
        return method.paper if method and method.paper else CALIBRATION


PAPERS: Final = (
    Source("isolayer", "IsoLayer", "000", ("Table 2", "Figure 2", "Table 3")),
    Source(
        "istar",
        "I-STAR",
        "001",
        ("Figure 2", "Table 1", "Figure 3", "Figure 4", "Figure 5", "Figure 6", "Figure 7", "Figure 8", "Table 2"),
    ),
    Source("isobn", "IsoBN", "002", ("Figure 1", "Figure 2", "Table 1", "Table 2", "Figure 4")),
    Source("calibration", "Isotropy calibration", "003", ("Table 1", "Table 2", "Table 3", "Table 4", "Table 5")),
)
"""Papers in menu order."""


def get(slug: str) -> Source:
    """The paper of that name; `InputError` with the allowed names otherwise."""
    for source in PAPERS:
        if source.slug == slug:
            return source
    raise unknown_name("paper", slug, [source.slug for source in PAPERS], field="paper")


def slug_of(source: Source, place: str) -> str:
    """`istar-figure-2`."""
    return f"{source.slug}-{place.lower().replace(' ', '-')}"


def place_names(text: str) -> tuple[str, ...]:
    """`Figures 1, 2 and 4, Table 2` → Figure 1, Figure 2, Figure 4, Table 2; a range (`Figures 3–5`) is every number in it."""
    names: list[str] = []
    for kind, numbers in re.findall(r"(Figure|Table)s?\s+(\d+(?:\s*(?:,|and|–|-)\s*\d+)*)", text):
        for first, last in re.findall(r"(\d+)(?:\s*[–-]\s*(\d+))?", numbers):
            names += [f"{kind} {number}" for number in range(int(first), int(last or first) + 1)]
    return tuple(names)
