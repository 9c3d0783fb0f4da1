"""The rows of a set whose neighbours and labels say something: rows that are not zero, and one of each group of copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics import zeros
from isoviz.metrics.copies import first_of_connected, originals

Rows = NDArray[np.int64]


def comparable_rows(points: NDArray[Any], texts: NDArray[Any] | None = None) -> tuple[Rows, tuple[str, ...]]:
    """Ascending indices of the rows (n, d) that are not zero and not a copy of an earlier one, and sentences on the others.

    Args:
        texts: (n,) of the rows; a row that repeats a text is a copy, too.
    """
    rows = zeros.nonzero_rows(points)
    distinct = rows[np.unique(first_copies(points[rows], None if texts is None else texts[rows]))]
    notes = [f"{note}." for note in [zeros.left_out(len(points), len(rows))] if note]
    if copies := len(rows) - len(distinct):
        are = "is a copy of another row" if copies == 1 else "are copies of other rows"
        notes.append(f"{len(distinct):,} distinct vectors in {len(rows):,} rows: {copies:,} {are} and left out.")
    return distinct, tuple(notes)


def first_copies(points: NDArray[Any], texts: NDArray[Any] | None = None) -> Rows:
    """(n,) the first row that each row is a copy of, by its vector or by its text."""
    first = originals(np.asarray(points, np.float64))
    if texts is None:
        return first
    _, first_text, code = np.unique(texts.astype(str), return_index=True, return_inverse=True)
    rows = np.arange(len(first))
    links = np.concatenate([np.stack([rows, first], axis=1), np.stack([rows, first_text[code]], axis=1)])
    return first_of_connected(links, len(first))
