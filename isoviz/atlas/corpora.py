"""Corpora of related pairs: the bundled one, and tables of your own. Two sentences of different pairs count as unrelated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import demo
from isoviz.cosines.pairs import FEWEST_RELATED
from isoviz.errors import InputError

if TYPE_CHECKING:
    from isoviz.vectors import TextSet

EVERYDAY: Final = "demo/everyday"
"""The bundled corpus: 240 paraphrases in everyday English (`factory/everyday.py`; its card lies beside its rows)."""
COLUMNS: Final = ("sentence1", "sentence2")


@dataclass(frozen=True)
class Corpus:
    """Related pairs of texts.

    Attributes:
        name: of the bundled corpus, or of a file without its folder.
        pairs: left and right texts.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """Thirty-two hex digits of SHA-256 over the pairs: a line each, with a tab between the texts and a line feed after each."""
        content = "".join(f"{left}\t{right}\n" for left, right in self.pairs)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @cached_property
    def texts(self) -> list[str]:
        """Each text once, the left ones first."""
        return list(dict.fromkeys([left for left, _ in self.pairs] + [right for _, right in self.pairs]))

    @property
    def relation(self) -> NDArray[np.intp]:
        """(pairs, 2): their places in `texts`, for `isoviz.ruler`."""
        place = {text: number for number, text in enumerate(self.texts)}
        return np.array([[place[left], place[right]] for left, right in self.pairs])


def read(name: str, field: str = "corpora") -> Corpus:
    """The bundled corpus by name, or a table with the columns `sentence1` and `sentence2`, and perhaps `label` (0: unrelated, left out).

    Raises:
        InputError: no such table, or fewer than ten related pairs.
    """
    from isoviz.tables import formats

    bundled = name == EVERYDAY
    table = formats.read(demo.rows_dir(EVERYDAY) / "pairs.parquet" if bundled else name, field, COLUMNS)
    if missing := [column for column in COLUMNS if column not in table.column_names]:
        raise InputError(
            f"{field}: '{Path(name).name}' has no column '{missing[0]}' (expected: {', '.join(COLUMNS)})", field=field
        )
    rows = table.to_pandas().dropna(subset=list(COLUMNS))
    if "label" in rows:
        rows = rows[rows["label"] != 0]
    return of_pairs(
        name if bundled else Path(name).name, zip(*(rows[column].astype(str) for column in COLUMNS), strict=True), field
    )


def of_pairs(name: str, pairs: Iterable[tuple[str, str]], field: str) -> Corpus:
    """A corpus of these pairs, each once."""
    found = tuple(dict.fromkeys((left, right) for left, right in pairs if left != right))
    if len(found) < FEWEST_RELATED:
        raise InputError(
            f"{field}: '{name}' has {len(found)} related pairs; needs at least {FEWEST_RELATED}", field=field
        )
    return Corpus(name, found)


def of_set(texts: TextSet, related_from: float | None, share: float, field: str) -> Corpus:
    """The related pairs of a set: documents that are relevant to queries, or pairs with at least this score (None: this share of the
    highest). Raises `InputError` if the set has no pairs, or hardly any that are related."""
    if texts.pairs is None:
        raise InputError(
            f"{field}: only for texts of which pairs are related, by their task or by --pairs", field=field
        )
    text, scores = dict(zip(texts.columns["id"], texts.columns["text"], strict=True)), texts.pairs["score"]
    least = (share * scores.max() if texts.relation == "similarity" else 1e-9) if related_from is None else related_from
    pairs = texts.pairs[scores >= least]
    return of_pairs(texts.name, zip(pairs["left"].map(text), pairs["right"].map(text), strict=True), field)
