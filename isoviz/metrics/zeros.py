"""Rows of zeros: they have no direction, and are what encoders and exports leave where a text is missing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import blocks

_BLOCK: Final = 1 << 22  # numbers read at a time


def nonzero_rows(points: NDArray[Any]) -> NDArray[np.int64]:
    """Ascending indices of the rows (n, d) that are not all zeros; of all rows if there are no others."""
    rows = max(1, _BLOCK // max(1, points.shape[1]))
    parts = [start + np.flatnonzero(block.any(axis=1)) for start, block in blocks(points, rows)]
    found = np.concatenate(parts) if parts else np.arange(0)
    return found if len(found) else np.arange(len(points))


def left_out(total: int, kept: int, what: str = "rows") -> str:
    """`100 of 300 rows are zero and left out`; "" if none is."""
    zeros = total - kept
    return f"{zeros:,} of {total:,} {what} {'is' if zeros == 1 else 'are'} zero and left out" if zeros else ""
