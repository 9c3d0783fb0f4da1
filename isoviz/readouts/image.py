"""The vectors that read-outs are taken from, with what several of them share."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROUNDING: Final = 1e-6
"""Scores of unit vectors that are closer than this count as equal: single-precision sums differ by about as much."""
MOST_PAIRED: Final = 1_500
"""Rows of which all pairs are compared at most; of more, as many are drawn with seed 0."""


_SAFE: Final = {4: 1e15, 8: 1e120}
"""By bytes of a number: entries up to here have squares within range."""
_NOTHING: Final = 1e-12
"""Lengths below this share of the longest are rounding, however long the other vectors are."""


class Image:
    """The vectors (n, d) of some rows after a chain, in single precision and in units of the longest.

    Neither cosines nor the order of dot products depend on that unit, and squares stay within range. A vector has no direction
    if it is shorter than `ROUNDING` times the typical one: what a transform leaves of a vector that it removes.
    """

    def __init__(self, points: NDArray[Any]) -> None:
        x = np.asarray(points)
        if x.dtype not in (np.float32, np.float64):
            x = x.astype(np.float64)
        largest = max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))
        if largest and not _SAFE[x.dtype.itemsize] > largest > 1 / _SAFE[x.dtype.itemsize]:
            x = x / x.dtype.type(largest)
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x).astype(np.float64))
        longest = float(lengths.max(initial=0.0)) or 1.0
        self.points = np.empty(x.shape, dtype=np.float32)
        np.multiply(x, x.dtype.type(1 / longest), out=self.points, casting="same_kind")
        self.lengths = lengths / longest
        present = self.lengths[self.lengths > _NOTHING]
        self.directed = self.lengths > ROUNDING * (float(np.median(present)) if len(present) else 1.0)

    @property
    def n(self) -> int:
        return len(self.points)

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """(n, d): each vector with length 1; one of length 0 stays 0, so that its cosines are 0."""
        scale = np.divide(1.0, self.lengths, out=np.zeros(self.n), where=self.directed)
        return np.asarray(self.points * scale[:, None].astype(np.float32))

    @cached_property
    def sample(self) -> NDArray[np.int64]:
        """The rows of which all pairs are compared."""
        if self.n <= MOST_PAIRED:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(0).choice(self.n, MOST_PAIRED, replace=False))

    @cached_property
    def cosines(self) -> NDArray[np.float32]:
        """(m, m) of the rows of `sample`."""
        unit = self.unit[self.sample]
        return np.asarray(unit @ unit.T)

    @cached_property
    def others(self) -> NDArray[np.float32]:
        """`cosines`, with −∞ for each row and itself."""
        scores = self.cosines.copy()
        np.fill_diagonal(scores, -np.inf)
        return scores

    def nearest(self, k: int) -> NDArray[np.int64]:
        """(m, k): the k nearest other rows by cosine, as places in `sample`, in no order."""
        return top(self.others, k)


def top(scores: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """(m, k): places of the k largest of each row of (m, n) scores, in no order; which of equal ones at the edge is arbitrary."""
    k = min(k, scores.shape[1])
    if k == scores.shape[1]:
        return np.tile(np.arange(k), (len(scores), 1))
    return np.asarray(np.argpartition(scores, scores.shape[1] - k, axis=1)[:, -k:])
