"""Correction for multiple tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def holm(p: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Holm's adjusted p-values along the last axis. An undefined value (nan) does not count as a test and stays undefined.

    Rejecting all values below α keeps the chance of any false rejection in the row at or below α, for any dependence between
    the tests (Holm 1979).
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1)  # undefined ones last
    ranked = np.take_along_axis(values, order, axis=-1)
    remaining = np.isfinite(values).sum(axis=-1, keepdims=True) - np.arange(values.shape[-1])
    adjusted = np.fmin(np.fmax.accumulate(ranked * np.maximum(remaining, 1), axis=-1), 1.0)
    adjusted[np.isnan(ranked)] = np.nan
    in_order = np.empty_like(adjusted)
    np.put_along_axis(in_order, order, adjusted, axis=-1)
    return in_order
