"""The vectors that read-outs are computed from, with intermediate results that several read-outs share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING: Final = 1e-6
"""Scores of unit vectors closer than this count as equal, because single-precision sums differ by about as much."""
MOST_PAIRED: Final = 1_500
"""Most rows for which all pairs are compared; larger sets are sampled (seed 0)."""
_UNDECIDED: Final = 10 * ROUNDING
"""Cosines in single precision that are closer may be in another order in double precision."""
_SAFE: Final = {4: 1e15, 8: 1e120}
"""Bytes of a number → the largest entry whose square does not overflow."""
_NOTHING: Final = 1e-12
"""Vectors shorter than this share of the typical length are rounding error."""


class Image:
    """The vectors (n, d) of some rows after a chain, in single precision and in units of the longest.

    Neither cosines nor the order of dot products depend on that unit, and squares do not overflow. A vector shorter than `ROUNDING`
    times the typical one has no direction: it is what a transform leaves of a vector that it removes.
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
        self.points: NDArray[np.float32] = np.empty(x.shape, dtype=np.float32)
        np.multiply(x, x.dtype.type(1 / longest), out=self.points, casting="same_kind")
        self.lengths = lengths / longest
        present = self.lengths[self.lengths > _NOTHING]
        self.directed = self.lengths > ROUNDING * (float(np.median(present)) if len(present) else 1.0)

    @property
    def n(self) -> int:
        return len(self.points)

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """(n, d): vectors scaled to length 1; a zero vector stays zero, so its cosines are 0."""
        scale = np.divide(1.0, self.lengths, out=np.zeros(self.n), where=self.directed)
        return np.asarray(self.points * scale[:, None].astype(np.float32))

    @cached_property
    def sample(self) -> NDArray[np.int64]:
        """The rows for which all pairs are compared."""
        if self.n <= MOST_PAIRED:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(0).choice(self.n, MOST_PAIRED, replace=False))

    @cached_property
    def cosines(self) -> NDArray[np.float32]:
        """(m, m) cosines between the rows of `sample`."""
        unit = self.unit[self.sample]
        return np.asarray(unit @ unit.T)

    @cached_property
    def others(self) -> NDArray[np.float32]:
        """`cosines` with −∞ on the diagonal."""
        scores = self.cosines.copy()
        np.fill_diagonal(scores, -np.inf)
        return scores

    def nearest(self, k: int) -> csr_array:
        """(m, m): `among_largest` of the k nearest other rows of each row of `sample` by cosine, k < m.

        Where single precision cannot decide the k-th place, in double precision: which pairs are tied would otherwise depend on the
        number of threads, as single-precision sums do.
        """
        from scipy.sparse import csr_array

        place = len(self.sample) - k
        part = np.partition(self.others, (place - 1, place), axis=1)
        close = part[:, place] - part[:, place - 1] <= _UNDECIDED
        rows, columns = np.nonzero((self.others >= part[:, place, None]) & ~close[:, None])
        unit = self.points[self.sample].astype(np.float64)
        norms = np.linalg.norm(unit, axis=1)
        unit *= np.divide(1.0, norms, out=np.zeros_like(norms), where=self.directed[self.sample])[:, None]
        undecided = np.flatnonzero(close)
        scores = unit[undecided] @ unit.T
        scores[np.arange(len(undecided)), undecided] = -np.inf
        chances = among_largest(scores, k)
        tied, others = np.nonzero(chances)
        values = np.concatenate([np.ones(len(rows)), chances[tied, others]])
        where = np.concatenate([rows, undecided[tied]]), np.concatenate([columns, others])
        return csr_array((values, where), shape=self.others.shape)


def among_largest(scores: NDArray[np.floating], k: int) -> NDArray[np.float64]:
    """(m, n): how likely each of (m, n) scores is among the k largest of its row; each row sums to k.

    Scores closer than `ROUNDING` to the k-th largest are tied with it, and any order of them is as likely as any other. So the order of
    the rows does not matter, and rows that are all equal have neighbours by chance only.
    """
    place = scores.shape[1] - k
    last = np.partition(scores, place, axis=1)[:, place, None]
    found = scores >= last - ROUNDING
    chances = found.astype(np.float64)
    rows = np.flatnonzero(found.sum(axis=1) > k)
    if len(rows):
        above = scores[rows] > last[rows] + ROUNDING
        certain, possible = above.sum(axis=1, keepdims=True), found[rows].sum(axis=1, keepdims=True)
        chances[rows] *= np.where(above, 1.0, (k - certain) / (possible - certain))
    return chances
