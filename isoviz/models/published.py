"""The models that the four papers fine-tune, by their hub ids. Where a paper names only a family, the usual checkpoint stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class PublishedModel:
    """One model of the papers.

    Attributes:
        name: hub id.
        papers: who fine-tunes it.
        assumed: the paper names the family only (or the family and its size); this checkpoint is our choice.
    """

    name: str
    papers: tuple[str, ...]
    assumed: bool = False

    @property
    def label(self) -> str:
        """In a list: id, papers, and whether the checkpoint is a guess."""
        guess = " (the paper names the family only)" if self.assumed else ""
        return f"{self.name} · {', '.join(self.papers)}{guess}"


PUBLISHED: Final[tuple[PublishedModel, ...]] = (
    PublishedModel("google-bert/bert-base-cased", ("IsoLayer", "I-STAR", "IsoBN")),
    PublishedModel("FacebookAI/roberta-large", ("IsoLayer", "IsoBN")),
    PublishedModel("distilbert/distilbert-base-cased", ("I-STAR",)),
    PublishedModel("albert/albert-base-v2", ("I-STAR",)),
    PublishedModel("google-bert/bert-base-uncased", ("isotropy calibration",), assumed=True),
    PublishedModel("FacebookAI/roberta-base", ("isotropy calibration",), assumed=True),
    PublishedModel("distilbert/distilbert-base-uncased", ("isotropy calibration",), assumed=True),
    PublishedModel("facebook/bart-base", ("isotropy calibration",), assumed=True),
    PublishedModel("facebook/bart-large", ("isotropy calibration",), assumed=True),
    PublishedModel("facebook/mbart-large-cc25", ("isotropy calibration",), assumed=True),
)
