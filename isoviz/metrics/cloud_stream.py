"""A cloud too large for memory, measured exactly from running sums. Memory does not grow with the number of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import is_tensor
from isoviz.metrics.sample import Directions, StreamedSample, as_float64
from isoviz.metrics.streaming import CovarianceAccumulator

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points


class CloudStream:
    """Accepts batches (n_k, d) of float32 or float64 points; uses O(d²) memory. Numpy batches are summed in float64; tensors
    stay on their device (see `CovarianceAccumulator`).

    Attributes:
        sums: count, mean and covariance.
        zeros: number of vectors of length zero so far, which have no cosine.
        eps: machine epsilon of the points' number type.
    """

    def __init__(self, d: int, eps: float = float(np.finfo(np.float32).eps)) -> None:
        self.sums = CovarianceAccumulator(d)
        self.zeros = 0
        self.eps = eps
        self._direction: Any = np.zeros(d)  # Σ x/‖x‖

    @property
    def count(self) -> int:
        """n, the number of points so far."""
        return self.sums.count

    def update(self, batch: Points) -> None:
        """Add the rows of a batch (n_k, d), all finite."""
        if len(batch) == 0:  # type: ignore[arg-type]
            return
        self.sums.update(batch)
        if is_tensor(batch):
            tensor: Any = batch
            lengths: Any = tensor.norm(dim=1)
            nonzero: Any = lengths > 0
            total = (tensor[nonzero] / lengths[nonzero][:, None]).double().sum(dim=0).cpu().numpy()
        else:
            total, nonzero = _directions(np.asarray(batch, dtype=np.float64))
        self._direction = self._direction + total
        self.zeros += len(nonzero) - int(nonzero.sum())

    def merge(self, other: CloudStream) -> None:
        """Add the points of another stream; `other` does not change."""
        self.sums.merge(other.sums)
        self._direction = self._direction + other._direction
        self.zeros += other.zeros

    def reduce(self, gather: Callable[[Any], list[Any]]) -> CloudStream:
        """The stream over the points of all processes, identical on each; `gather` as in `CovarianceAccumulator.reduce`."""
        total = CloudStream(self.sums.d, self.eps)
        total.sums = self.sums.reduce(gather)
        for direction, zeros in gather((self._direction, self.zeros)):
            total._direction = total._direction + direction
            total.zeros += zeros
        return total

    def sample(self, **inputs: Any) -> StreamedSample:
        """The points so far as a sample for metrics, with the additional inputs that some need (`Metric.inputs`)."""
        return StreamedSample(self.sums, Directions(self._direction, self.zeros), self.eps, inputs=inputs)

    def mean(self) -> NDArray[np.float64]:
        """(d,) mean activation."""
        return as_float64(self.sums.mean)

    def covariance(self) -> NDArray[np.float64]:
        """(d, d), divisor n − 1, n >= 2."""
        return as_float64(self.sums.covariance)


def _directions(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Σ x/‖x‖ of a batch, (d,), and which of its vectors are not zero, (n,)."""
    squares = np.einsum("ij,ij->i", x, x)
    if (
        squares.size and squares.min() > 1e-280 and squares.max() < 1e280
    ):  # nothing overflows or underflows: no copy needed
        return (1.0 / np.sqrt(squares)) @ x, np.ones(len(x), dtype=bool)
    biggest = np.abs(x).max(axis=1)
    nonzero = biggest > 0
    unit = x[nonzero] / biggest[nonzero][:, None]
    return (1.0 / np.sqrt(np.einsum("ij,ij->i", unit, unit))) @ unit, nonzero
