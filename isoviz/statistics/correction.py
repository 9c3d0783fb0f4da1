"""Many tests at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def holm(p: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Holm's adjusted p-values along the last axis; an undefined one (nan) is no test and stays undefined.

    Rejecting all below α keeps the chance of a single false rejection in the whole row at α or below, however the tests depend
    on each other (Holm 1979).
    """
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(given, axis=-1)  # undefined ones last
    ranked = np.take_along_axis(given, order, axis=-1)
    left = np.isfinite(given).sum(axis=-1, keepdims=True) - np.arange(given.shape[-1])
    adjusted = np.fmin(np.fmax.accumulate(ranked * np.maximum(left, 1), axis=-1), 1.0)
    adjusted[np.isnan(ranked)] = np.nan
    in_order = np.empty_like(adjusted)
    np.put_along_axis(in_order, order, adjusted, axis=-1)
    return in_order
