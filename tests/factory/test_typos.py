"""The mistyped rows of docs/what-holds.md."""

from __future__ import annotations

import numpy as np
import pandas as pd

from factory import typos

TEXT = "A boxer recalled a lighthouse, and then 1234 noon tall."


def test_two_neighbouring_inner_letters_are_exchanged() -> None:
    words = TEXT.split()
    changed = typos.mistyped(TEXT, np.random.default_rng(0), share=1.0).split()
    for word, other in zip(words, changed, strict=True):
        places = [at for at, pair in enumerate(zip(word, other, strict=True)) if pair[0] != pair[1]]
        letters = word.strip(",.")
        if letters.isalpha() and letters in ("boxer", "recalled", "lighthouse", "then", "tall"):
            assert len(places) == 2 and places[1] == places[0] + 1 and places[0] > 0 and places[1] < len(letters) - 1
            assert sorted(word) == sorted(other)
        else:
            assert word == other  # short, a number, or the same letter twice
    assert typos.mistyped(TEXT, np.random.default_rng(0), share=0.0) == TEXT


def test_the_share_of_words_and_equal_rows_for_an_equal_seed() -> None:
    frame = pd.DataFrame({"sentence": ["lantern harbour"] * 4000, "label": range(4000)})
    rows = typos.mistyped_rows(frame, ("sentence",))
    changed = [word != other for one, two in zip(frame.sentence, rows.sentence, strict=True)
               for word, other in zip(one.split(), two.split(), strict=True)]  # fmt: skip
    assert abs(np.mean(changed) - typos.SHARE) < 0.02
    assert (rows.label == frame.label).all() and rows.equals(typos.mistyped_rows(frame, ("sentence",)))
