"""Mean, covariance and scores of a cloud that arrives in batches, or from several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import check_shape, float64_matrix, is_tensor, too_few, warn_undefined
from isoviz.metrics.moments import Moments, centre
from isoviz.metrics.scores import plug_in_estimate, unbiased_estimate

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Array, Points


class CovarianceAccumulator:
    """Takes batches (n_k, d); holds count, mean and Σx̃x̃ᵀ, and Σ‖x̃‖²x̃ and Σ‖x̃‖⁴ for the unbiased score.

    Each batch is centred by itself and then merged (Chan et al. 1983; the third and fourth sums by the same
    expansion), so the result agrees to about 1e-12 however the data was split. Tensors stay on their device:
    products in their precision, sums in float64 (on the CPU for Apple's GPU, which has none). All batches are
    numpy, or all are tensors on one device.
    """

    def __init__(self, d: int) -> None:
        if d < 1:
            raise InputError(f"d must be at least 1, got {d}")
        self.d = d
        self.count = 0
        self._mean: Any = None  # (d,)
        self._scatter: Any = None  # (d, d)
        self._cubic: Any = None  # (d,): Σ‖x̃‖²x̃
        self._quartic: Any = None  # 0-d: Σ‖x̃‖⁴

    def update(self, batch: Points) -> None:
        """Adds the rows of a batch (n_k, d); values are checked for numpy only, a tensor must be finite."""
        check_shape(tuple(np.shape(batch)), "batch")
        if np.shape(batch)[1] != self.d:
            raise InputError(f"batch must have {self.d} dimensions, got shape {tuple(np.shape(batch))}")
        if np.shape(batch)[0] == 0:
            return
        part = CovarianceAccumulator(self.d)
        part.count = np.shape(batch)[0]
        if is_tensor(batch):
            part._fill_from_tensor(batch)
        else:
            x, part._mean = centre(float64_matrix(batch, "batch"))
            squares = np.einsum("ij,ij->i", x, x)
            part._scatter, part._cubic, part._quartic = x.T @ x, squares @ x, squares @ squares
        self.merge(part)

    def _fill_from_tensor(self, batch: Any) -> None:
        import torch

        from isoviz.metrics.backward import sum_dtype, symmetric_product, working_dtype

        with torch.no_grad(), torch.autocast(batch.device.type, enabled=False):
            x = batch.detach().to(working_dtype(batch))
            anchor = x[0]
            x = x - anchor
            offset = x.mean(0)
            x -= offset
            wide, home = sum_dtype(batch.device), batch.device
            if wide != torch.float64:
                home, wide = torch.device("cpu"), torch.float64
            squares = x.square().sum(1)
            scatter, cubic = symmetric_product(x), squares @ x
            self._mean = anchor.to(home).to(wide) + offset.to(home).to(wide)
            self._scatter, self._cubic = scatter.to(home).to(wide), cubic.to(home).to(wide)
            self._quartic = squares.to(home).to(wide).square().sum()

    def merge(self, other: CovarianceAccumulator) -> None:
        """Adds what another accumulator has seen; `other` is left as it is."""
        if other.d != self.d:
            raise InputError(f"cannot merge {other.d} dimensions into {self.d}")
        if other.count == 0:
            return
        if self.count == 0:
            self.count = other.count
            self._mean, self._scatter = other._mean, other._scatter
            self._cubic, self._quartic = other._cubic, other._quartic
            return
        count = self.count + other.count
        mean = self._mean + (other._mean - self._mean) * (other.count / count)
        scatter, cubic, quartic = 0.0, 0.0, 0.0
        for part in (self, other):
            shift = part._mean - mean
            length = shift @ shift
            image = part._scatter @ shift
            total = part._scatter.diagonal().sum()
            scatter = scatter + part._scatter + part.count * (shift[:, None] * shift)
            cubic = cubic + part._cubic + total * shift + 2 * image + part.count * length * shift
            quartic = (
                quartic
                + part._quartic
                + 4 * (part._cubic @ shift + shift @ image)
                + 2 * total * length
                + part.count * length * length
            )
        self.count, self._mean, self._scatter, self._cubic, self._quartic = (
            count,
            mean,
            scatter,
            cubic,
            quartic,
        )

    @property
    def mean(self) -> Array:
        """(d,); undefined before the first point."""
        if self.count == 0:
            warn_undefined("mean", "no points were added")
            return np.full(self.d, np.nan)
        return self._mean

    @property
    def covariance(self) -> Array:
        """(d, d), divisor count − 1; undefined for fewer than two points."""
        if self.count < 2:
            warn_undefined("covariance", too_few(self.count))
            return np.full((self.d, self.d), np.nan) if self.count == 0 else self._scatter * float("nan")
        return self._scatter / (self.count - 1)

    @property
    def trace(self) -> float:
        """Total variance, divisor count − 1; undefined for fewer than two points."""
        if self.count < 2:
            warn_undefined("trace", too_few(self.count))
            return float("nan")
        return float(self._scatter.diagonal().sum()) / (self.count - 1)

    def isoscore(self) -> float:
        """IsoScore of everything added so far."""
        return self._score("isoscore", plug_in_estimate)

    def isoscore_unbiased(self) -> float:
        """The unbiased score of everything added so far (see `isoviz.metrics.isoscore_unbiased`)."""
        return self._score("isoscore_unbiased", unbiased_estimate)

    def _score(self, metric: str, estimator: Any) -> float:
        if self.count < 2:
            warn_undefined(metric, too_few(self.count), depth=2)
            return float("nan")
        n = self.count
        unit = float(self._scatter.diagonal().sum()) / (n - 1) or 1.0
        frobenius = float(((self._scatter / ((n - 1) * unit)) ** 2).sum())
        quartic = float(self._quartic) / ((n - 1) * unit * unit)
        collapsed = not float(self._scatter.diagonal().sum()) > 0
        moments = Moments(n, self.d, 0.0 if collapsed else 1.0, frobenius, quartic, None, collapsed)
        estimate = estimator(moments)
        if estimate.problem:
            warn_undefined(metric, estimate.problem, depth=2)
        return float(estimate.value)
