"""Texts cut in two: pairs that are related without anyone having said so."""

from __future__ import annotations

from typing import Final

from isoviz.errors import InputError
from isoviz.vectors.sets import TextSet, VectorSet

ASSUMES: Final = (
    "the two halves of each text. This assumes that halves of one text are about the same; they also share author and style, and many are "
    "fragments of sentences, so pairs of your own kind may have other cosines"
)
"""Which pairs are related then, and what that assumes."""
FEWEST_WORDS: Final = 6
"""Words of the shortest text that is cut."""


def halved(texts: TextSet | VectorSet) -> TextSet:
    """The first and the second half of each text as two texts, and each two as a pair with score 1.

    A text is cut between the words in its middle. Repeated texts count once; texts of fewer than `FEWEST_WORDS` words are left out.

    Raises:
        InputError: fewer than two texts are long enough (field `halves`).
    """
    import pandas as pd

    words = [text.split() for text in dict.fromkeys(texts.columns["text"])]
    long = [one for one in words if len(one) >= FEWEST_WORDS]
    if len(long) < 2:
        raise InputError.at(
            "halves", f"only {len(long)} of {len(words):,} different texts have {FEWEST_WORDS} words or more"
        )
    first = [" ".join(one[: len(one) // 2]) for one in long]
    second = [" ".join(one[len(one) // 2 :]) for one in long]
    left, right = ([f"{number}{side}" for number in range(1, len(long) + 1)] for side in "ab")
    columns = pd.DataFrame({"id": left + right, "text": first + second})
    pairs = pd.DataFrame({"left": left, "right": right, "score": 1.0})
    return TextSet(columns, f"{texts.name}, in halves", pairs, "similarity")
