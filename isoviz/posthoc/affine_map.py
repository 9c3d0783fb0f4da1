"""The map x ↦ xA + b, and its composition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Affine(NamedTuple):
    """An affine map of row vectors; unpacks as `linear, offset`.

    Far from the origin `(x − μ)A` is more accurate than `xA + b`, so `transform` computes the former.

    Attributes:
        linear: A, (d, d'); or its diagonal, (d,), if A is diagonal.
        offset: b, (d',).
    """

    linear: NDArray[np.float64]
    offset: NDArray[np.float64]

    @property
    def diagonal(self) -> bool:
        return self.linear.ndim == 1

    @property
    def matrix(self) -> NDArray[np.float64]:
        """A as a (d, d') matrix, also if it is diagonal."""
        return np.diag(self.linear) if self.diagonal else self.linear

    def of_points(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """xA + b of (n, d) points or of one (d,) mean."""
        image: NDArray[np.float64] = points * self.linear if self.diagonal else points @ self.linear
        return image + self.offset

    def then(self, following: Affine) -> Affine:
        """The composition: this map, then `following`."""
        if self.diagonal and following.diagonal:
            linear = self.linear * following.linear
        elif self.diagonal:
            linear = self.linear[:, None] * following.linear
        else:
            linear = self.linear * following.linear if following.diagonal else self.linear @ following.linear
        return Affine(linear, following.of_points(self.offset))
