"""Rows and dimensions of a set of vectors that repeat others or say nothing, and the set without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

import numpy as np

from isoviz.errors import InputError, listed
from isoviz.metrics.cloud import blocks
from isoviz.metrics.copies import originals
from isoviz.vectors.sets import MOST_KEPT, VectorSet

Oddity = Literal["constant", "copies"]
MOST_COMPARED: Final = 20_000
"""Most rows that are compared with each other; in larger sets no copies are looked for."""
_BLOCK_ROWS: Final = 16_384


def found(vectors: VectorSet) -> dict[str, list[int]]:
    """What a set has of these, as indices from 0.

    Returns:
        `constant`: dimensions with the same number in every row that is not zero. `copies`: rows that repeat an earlier one up to rounding
        (`isoviz.metrics.copies`), not of a search, whose relevance names rows. Nothing of a set that is not stored as a whole.
    """
    if vectors.points.nbytes > MOST_KEPT:
        return {}
    low, high = (np.full(vectors.d, sign * np.inf) for sign in (1, -1))
    for _, block in blocks(vectors.points, _BLOCK_ROWS):
        filled = block[block.any(axis=1)]
        low = np.minimum(low, filled.min(axis=0, initial=np.inf))
        high = np.maximum(high, filled.max(axis=0, initial=-np.inf))
    indices = {"constant": np.flatnonzero(low == high)}
    if vectors.n <= MOST_COMPARED and vectors.pairs is None:
        places = np.arange(vectors.n)
        repeated = originals(np.asarray(vectors.points, dtype=np.float64)) < places
        indices["copies"] = places[repeated & vectors.points.any(axis=1)]  # zero rows have a note of their own
    return {name: places.tolist() for name, places in indices.items() if len(places)}


def without(vectors: VectorSet, oddity: Oddity) -> VectorSet:
    """The set without its constant dimensions, or without the rows that are copies; a note says so.

    Raises:
        InputError: fewer than two would be left.
    """
    places = found(vectors).get(oddity, [])
    axis, what = (1, "dimensions that are constant") if oddity == "constant" else (0, "rows that repeat earlier ones")
    if vectors.points.shape[axis] < len(places) + 2:
        raise InputError.at("vectors", f"without the {what}, fewer than two would be left")
    points = np.delete(vectors.points, places, axis=axis)
    if oddity == "copies":
        columns = vectors.columns.drop(index=places).reset_index(drop=True)
        note = f"{len(places):,} {what} are left out, and later rows move up"
        return replace(vectors, points=points, columns=columns, notes=(*vectors.notes, note))
    facts, names = dict(vectors.facts), vectors.facts.get("dimensions", ())
    if len(names) == vectors.d:
        facts["dimensions"] = np.delete(names, places).tolist()
    note = f"{what} are left out ({listed(places, 60)}), and later ones move up"
    return replace(vectors, points=points, facts=facts, notes=(*vectors.notes, note))
