"""A shifted test set for any task of texts: the same rows with typing errors, by a rule and a seed instead of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

SHARE: Final = 0.1
"""Probability with which a word of four letters or more is mistyped."""
_WORD = re.compile(r"[^\W\d_]{4,}")


def mistyped(text: str, rng: np.random.Generator, share: float = SHARE) -> str:
    """The text with two different neighbouring inner letters exchanged in each mistyped word; first and last letters stay."""

    def swap(match: re.Match[str]) -> str:
        word = match[0]
        places = [at for at in range(1, len(word) - 2) if word[at] != word[at + 1]]
        if rng.random() >= share or not places:
            return word
        at = int(rng.choice(places))
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    return _WORD.sub(swap, text)


def mistyped_rows(frame: pd.DataFrame, columns: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """The rows with the texts of these columns mistyped; labels stay. Equal rows and seed give equal results."""
    rng = np.random.default_rng(seed)
    return frame.assign(**{name: [mistyped(text, rng) for text in frame[name]] for name in columns})
