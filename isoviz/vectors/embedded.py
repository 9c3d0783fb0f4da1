"""A set of vectors inside a page without a server (`isoviz page`, or a saved page of the app), which `isoviz.tables.kinds.page` reads."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.vectors.sets import VectorSet

MOST_ROWS: Final = 20_000
MOST_DIMENSIONS: Final = 4_096
MOST_NUMBERS: Final = 20_000 * 1_024
"""Largest set that the page takes."""
_COLUMNS: Final = ("id", "label", "text")


def embedded(vectors: VectorSet, *, texts: bool = True, field: str = "vectors", sample: bool = False) -> dict[str, Any]:
    """`name`, the points as a .npy file in base64 (`npy`), and `columns` by name, with or without the texts.

    Args:
        sample: take as many rows as fit, drawn with seed 0, which the name then says.

    Raises:
        InputError: more vectors than the page takes.
    """
    kept = [name for name in _COLUMNS if name in vectors.columns and (texts or name != "text")]
    columns = {name: vectors.columns[name].map(str, na_action="ignore").fillna("").tolist() for name in kept}
    return embedded_points(vectors.points, vectors.name, columns, field=field, sample=sample)


def embedded_points(
    points: NDArray[Any], name: str, columns: Mapping[str, list[str]], *, field: str, sample: bool
) -> dict[str, Any]:
    """The same of points (n, d) and their columns; without pandas."""
    n, d = points.shape
    rows = min(MOST_ROWS, MOST_NUMBERS // min(d, MOST_DIMENSIONS))
    if d > MOST_DIMENSIONS or (n > rows and not sample):
        most, got = f"{rows:,} × {min(d, MOST_DIMENSIONS):,}", f"{n:,} × {d:,}"
        raise InputError.at(field, f"a page takes up to {most} numbers (got {got})")
    if n > rows:
        drawn = np.sort(np.random.default_rng(0).choice(n, rows, replace=False))
        points, name = points[drawn], f"{name} ({rows:,} of {n:,} rows, drawn with seed 0)"
        columns = {column: [values[row] for row in drawn] for column, values in columns.items()}
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(points))
    return {"name": name, "npy": base64.b64encode(stream.getvalue()).decode(), "columns": dict(columns)}
