"""The rows of a set: from a file, checked, and drawn."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz import vectors
from isoviz.drift.measures import GROUPS, Matrix
from isoviz.errors import InputError, shortened
from isoviz.metrics.cloud import is_tensor
from isoviz.tables import arrays, formats
from isoviz.watch.vectors import as_rows

FEWEST: Final = GROUPS
"""Fewest rows of a set, and fewest pairs of rows with the same id."""
MOST_ROWS: Final = 2_000
MOST_BYTES: Final = 4 * 2**20
"""Most rows in a baseline, and most bytes of them in float32, but never fewer rows than `FEWEST`."""


def read(
    name: str | os.PathLike[str], column: str | None = None, ids: str | None = None
) -> tuple[NDArray[Any], list[str] | None]:
    """The vectors of a file of any format (n, d), and their ids: those of the column `ids`, or of a column `id` if there is one."""
    file = os.fspath(name)
    if Path(file).suffix.lower() not in formats.SUFFIXES and formats.remote(file) is None:
        if ids is not None:
            raise InputError("ids: an array file has no columns; give a table, or pair by row number", field="ids")
        return vectors.reading.named_array(file, column, "vectors")[0], None
    found = vectors.read(file, vectors.Columns(points=column, id=ids), field="vectors")
    return found.points, [str(one) for one in found.columns["id"]] if "id" in found.columns else None


def checked(points: ArrayLike) -> NDArray[Any]:
    """The points (n, d), themselves if they are an array, possibly of a file."""
    given: Any = points.detach() if is_tensor(points) else points  # type: ignore[union-attr]
    raw: NDArray[Any] = given if isinstance(given, np.ndarray) and given.dtype.kind in "fiu" else as_rows(given)
    if raw.ndim != 2 or raw.shape[1] < 2 or len(raw) < FEWEST:
        raise InputError(
            f"vectors: expected at least {FEWEST} rows and 2 dimensions, got the shape {raw.shape}", field="vectors"
        )
    arrays.check_finite(raw, "vectors")
    return raw


def drawn(raw: NDArray[Any], places: NDArray[np.int64]) -> Matrix:
    """These rows in the precision in which a baseline keeps them, as float64."""
    with np.errstate(over="ignore"):
        rows = raw[places].astype("<f4").astype(np.float64)
    for bad, what in ((~np.isfinite(rows).all(axis=1), "numbers above 3.4e38"), (~rows.any(axis=1), "length 0")):
        if bad.any():
            raise InputError(f"vectors: row {places[bad.argmax()] + 1} has {what}", field="vectors")
    if np.all(rows.std(axis=0) <= np.finfo(np.float32).eps * np.abs(rows.mean(axis=0))):  # up to rounding
        raise InputError("vectors: all rows are identical", field="vectors")
    return rows


def checked_ids(ids: Iterable[Any], n: int) -> list[str]:
    """Ids as text: n different ones."""
    names = [str(one) for one in ids]
    if len(names) != n:
        raise InputError(f"ids: {len(names):,} for {n:,} rows", field="ids")
    if len(set(names)) < n:
        twice = next(name for row, name in enumerate(names) if name in names[:row])
        raise InputError(f"ids: '{shortened(twice)}' is given twice", field="ids")
    return names
