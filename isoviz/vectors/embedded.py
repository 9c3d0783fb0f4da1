"""A set of vectors inside a page without a server (`isoviz page`, or a saved page of the app), which `isoviz.tables.kinds.page` reads."""

from __future__ import annotations

import base64
import io
from typing import Any, Final

import numpy as np

from isoviz.errors import InputError
from isoviz.vectors.sets import VectorSet

MOST_ROWS: Final = 20_000
MOST_DIMENSIONS: Final = 4_096
MOST_NUMBERS: Final = 20_000 * 1_024
"""Largest set that the page takes."""
_COLUMNS: Final = ("id", "label", "text")


def embedded(vectors: VectorSet, *, texts: bool = True, field: str = "vectors") -> dict[str, Any]:
    """`name`, the points as a .npy file in base64 (`npy`), and `columns` by name, with or without the texts.

    Raises:
        InputError: more vectors than the page takes.
    """
    rows = min(MOST_ROWS, MOST_NUMBERS // min(vectors.d, MOST_DIMENSIONS))
    if vectors.n > rows or vectors.d > MOST_DIMENSIONS:
        most, got = f"{rows:,} × {min(vectors.d, MOST_DIMENSIONS):,}", f"{vectors.n:,} × {vectors.d:,}"
        raise InputError.at(field, f"a page takes up to {most} numbers (got {got})")
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(vectors.points))
    kept = [name for name in _COLUMNS if name in vectors.columns and (texts or name != "text")]
    columns = {name: vectors.columns[name].map(str, na_action="ignore").fillna("").tolist() for name in kept}
    return {"name": vectors.name, "npy": base64.b64encode(stream.getvalue()).decode(), "columns": columns}
