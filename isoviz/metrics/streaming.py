"""A cloud that arrives in batches, or from several processes: exact running sums, whose memory does not grow with its points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import check_shape, float64_matrix, is_tensor, resolution, too_few, undefined, warn_undefined
from isoviz.metrics.moments import Moments, plug_in_estimate, sum_of_squares, unbiased_estimate
from isoviz.metrics.sample import Directions, Matrix, Sample, as_float64

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Array, Estimate, Points


_SUMS = ("anchor", "offset", "scatter", "cubic", "quartic")


class CovarianceAccumulator:
    """Accepts batches (n_k, d); stores the count, mean and Σx̃x̃ᵀ, and Σ‖x̃‖²x̃ and Σ‖x̃‖⁴ for the unbiased score.

    Each batch is centred separately and then merged (Chan et al. 1983; the third and fourth sums by the same expansion). The
    mean is stored as an offset from the first point, which is an exact anchor: a mean of 10⁴ is rounded to 10⁻¹², an error that
    would enter every shift between batches. The covariance and the scores therefore agree to 1e-12 relative for every split of
    the data, at any distance from the origin.

    Tensors stay on their device: products in their precision, sums in float64 (on the CPU for Apple's GPU, which has
    none). All batches are numpy, or all are tensors on one device.
    """

    def __init__(self, d: int) -> None:
        if d < 1:
            raise InputError(f"d must be at least 1, got {d}")
        self.d = d
        self.count = 0
        self._eps = 0.0  # the coarsest resolution among the batches
        self._anchor: Any = None  # (d,): the first point
        self._offset: Any = None  # (d,): the mean minus the anchor
        self._scatter: Any = None  # (d, d)
        self._cubic: Any = None  # (d,): Σ‖x̃‖²x̃
        self._quartic: Any = None  # 0-d: Σ‖x̃‖⁴

    def update(self, batch: Points) -> None:
        """Add the rows of a batch (n_k, d). Only numpy values are checked; a tensor must be finite."""
        check_shape(tuple(np.shape(batch)), "batch")
        if np.shape(batch)[1] != self.d:
            raise InputError(f"batch must have {self.d} dimensions, got shape {tuple(np.shape(batch))}")
        if np.shape(batch)[0] == 0:
            return
        part = CovarianceAccumulator(self.d)
        part.count = np.shape(batch)[0]
        part._eps = resolution(batch)
        if is_tensor(batch):
            part._fill_from_tensor(batch)
        else:
            x = float64_matrix(batch, "batch")
            part._anchor = x[0].copy()
            x = x - part._anchor
            part._offset = np.ones(len(x)) @ x / len(x)
            x -= part._offset
            squares = np.einsum("ij,ij->i", x, x)
            part._scatter, part._cubic, part._quartic = x.T @ x, squares @ x, squares @ squares
        self.merge(part)

    def _fill_from_tensor(self, batch: Any) -> None:
        import torch

        from isoviz.metrics.backward import symmetric_product
        from isoviz.metrics.precision import sum_dtype, working_dtype

        with torch.no_grad(), torch.autocast(batch.device.type, enabled=False):
            x = batch.detach().to(working_dtype(batch))
            anchor = x[0].clone()
            x = x - anchor
            offset = x.mean(0)
            x -= offset
            wide, home = sum_dtype(batch.device), batch.device
            if wide != torch.float64:
                home, wide = torch.device("cpu"), torch.float64
            squares = x.square().sum(1)
            scatter, cubic = symmetric_product(x), squares @ x
            self._anchor, self._offset = anchor.to(home).to(wide), offset.to(home).to(wide)
            self._scatter, self._cubic = scatter.to(home).to(wide), cubic.to(home).to(wide)
            self._quartic = squares.to(home).to(wide).square().sum()

    def merge(self, other: CovarianceAccumulator) -> None:
        """Add the points of another accumulator; `other` does not change."""
        if other.d != self.d:
            raise InputError(f"cannot merge {other.d} dimensions into {self.d}")
        if other.count == 0:
            return
        self._eps = max(self._eps, other._eps)
        if self.count == 0:
            self.count = other.count
            for name in _SUMS:
                setattr(self, f"_{name}", getattr(other, f"_{name}"))
            return
        if _home(self._scatter) != _home(other._scatter):
            raise InputError(f"cannot merge sums stored as {_home(other._scatter)} into {_home(self._scatter)}")
        count = self.count + other.count
        # The anchors' difference rounds relative to its own size, not to their distance from the origin.
        gap = (other._anchor - self._anchor) + (other._offset - self._offset)
        shifts = (gap * (-other.count / count), gap * (self.count / count))
        scatter, cubic, quartic = 0.0, 0.0, 0.0
        for part, shift in zip((self, other), shifts, strict=True):
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
        self.count, self._offset = count, self._offset + gap * (other.count / count)
        self._scatter, self._cubic, self._quartic = scatter, cubic, quartic

    def state(self) -> dict[str, Any]:
        """All stored values by name, as copies: tensors on their device if the batches were tensors, else numpy arrays.

        count, d (0-d integers), resolution (0-d), anchor (d,), offset (d,), scatter (d, d), cubic (d,), quartic (0-d);
        the sums in float64, and zeros before the first point. `from_state` restores the accumulator.
        """
        if self.count == 0:
            sums = {name: np.zeros({"scatter": (self.d, self.d), "quartic": ()}.get(name, (self.d,))) for name in _SUMS}
            return {"count": np.int64(0), "d": np.int64(self.d), "resolution": np.float64(0.0), **sums}
        values = {name: getattr(self, f"_{name}") for name in _SUMS}
        if is_tensor(self._scatter):
            import torch

            head: dict[str, Any] = {"count": torch.tensor(self.count), "d": torch.tensor(self.d)}
            head["resolution"] = torch.tensor(self._eps, dtype=torch.float64)
            return {**head, **{name: value.clone() for name, value in values.items()}}
        plain = {"count": np.int64(self.count), "d": np.int64(self.d), "resolution": np.float64(self._eps)}
        return {**plain, **{name: np.array(value) for name, value in values.items()}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> CovarianceAccumulator:
        """Restore the accumulator from its `state()`; further batches must be of the same kind, numpy or tensors.

        Raises:
            InputError: (a ValueError) a missing array, a wrong shape, or an entry that is not finite.
        """
        missing = sorted({"count", "d", "resolution", *_SUMS} - set(state))
        if missing:
            raise InputError(f"the accumulator's state lacks {', '.join(missing)}")
        accumulator = cls(int(state["d"]))
        count = int(state["count"])
        if count < 0:
            raise InputError(f"count in the accumulator's state must not be negative, got {count}")
        for name in _SUMS:
            shape = {"scatter": (accumulator.d, accumulator.d), "quartic": ()}.get(name, (accumulator.d,))
            if tuple(np.shape(state[name])) != shape:
                raise InputError(f"{name} in the accumulator's state must be {shape}, got {np.shape(state[name])}")
            if not np.isfinite(float(abs(state[name]).sum())):
                raise InputError(f"{name} in the accumulator's state must be finite")
        if count:
            accumulator.count, accumulator._eps = count, float(state["resolution"])
            for name in _SUMS:
                value = state[name]
                setattr(
                    accumulator, f"_{name}", value.clone() if is_tensor(value) else np.array(value, dtype=np.float64)
                )
        return accumulator

    def reduce(self, gather: Callable[[dict[str, Any]], Sequence[Mapping[str, Any]]]) -> CovarianceAccumulator:
        """The accumulator over the points of all processes, bitwise identical on each; `self` does not change.

        Args:
            gather: takes this process's state (always numpy arrays) and returns the states of all processes in rank order: for
                accelerate `lambda state: gather_object([state])`, else a call of `torch.distributed.all_gather_object`. Every
                process must call it, even one without points.

        Returns:
            Sums on the device of this process's batches; numpy if the batches were numpy or there were none.
        """
        own_state = {
            name: np.asarray(value.cpu() if is_tensor(value) else value) for name, value in self.state().items()
        }
        total = CovarianceAccumulator(self.d)
        for state in gather(own_state):
            total.merge(CovarianceAccumulator.from_state(state))
        if self.count and is_tensor(self._scatter):
            import torch

            for name in _SUMS:
                value = torch.as_tensor(getattr(total, f"_{name}"), dtype=torch.float64)
                setattr(total, f"_{name}", value.to(self._scatter.device))
        return total

    @property
    def mean(self) -> Array:
        """(d,); undefined before the first point."""
        if self.count == 0:
            warn_undefined("mean", "no points were added")
            return np.full(self.d, np.nan)
        return self._anchor + self._offset

    @property
    def covariance(self) -> Array:
        """(d, d), divisor count − 1; undefined for fewer than two points."""
        if self.count < 2:
            warn_undefined("covariance", too_few(self.count))
            return np.full((self.d, self.d), np.nan) if self.count == 0 else self._scatter * float("nan")
        return self._scatter / (self.count - 1)

    @property
    def quartic(self) -> float:
        """Σ‖x̃‖⁴ over the centred points; 0 before the first point. Overflows long before the points do."""
        return 0.0 if self.count == 0 else float(self._quartic)

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

    def _score(self, metric: str, estimator: Callable[[Moments], Estimate]) -> float:
        moments = StreamedSample(self, None, self._eps).moments
        estimate = undefined(too_few(self.count)) if moments is None else estimator(moments)
        if estimate.problem:
            warn_undefined(metric, estimate.problem, depth=2)
        return float(estimate.value)


def _home(value: Any) -> str:
    """Where the sums are stored: "numpy", or the device of the tensors."""
    return f"tensors on {value.device}" if is_tensor(value) else "numpy"


class StreamedSample(Sample):
    """Running sums: everything except the points, in memory that does not grow with their number.

    Args:
        sums: count, mean, covariance and fourth moment.
        directions: as `Sample.directions`; None if they were not summed.
        eps: as `Sample.eps`.
    """

    def __init__(
        self,
        sums: CovarianceAccumulator,
        directions: Directions | None,
        eps: float,
        *,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        self.points = None
        self.n, self.d = sums.count, sums.d
        self.eps = eps
        self.inputs = dict(inputs or {})
        if directions is not None:
            self.directions = directions
        self._sums = sums

    @cached_property
    def true_covariance(self) -> Matrix:
        """(d, d), divisor n − 1, n >= 2."""
        return as_float64(self._sums.covariance)

    @cached_property
    def moments(self) -> Moments | None:
        """As for points, but without the centred points; Q is nan if fourth powers overflowed float64."""
        if self.n < 2:
            return None
        covariance = self.true_covariance
        variances = covariance.diagonal()
        collapsed = bool(np.all(variances <= (self.eps * self.mean) ** 2))
        unit = float(variances.max()) or 1.0  # fourth powers overflow float64 before the points do
        scaled = covariance / unit
        total = self._sums.quartic
        quartic = total / ((self.n - 1) * unit) / unit if 1e-280 < total < np.inf else float("nan")
        trace = float(scaled.diagonal().sum())
        return Moments(self.n, self.d, trace, sum_of_squares(scaled), quartic, scaled, collapsed)

    @cached_property
    def mean(self) -> Matrix:
        return as_float64(self._sums.mean)

    @cached_property
    def std(self) -> Matrix:
        if self.n < 2:
            return np.zeros(self.d)
        return np.sqrt(np.clip(self.true_covariance.diagonal(), 0, None) * ((self.n - 1) / self.n))

    @cached_property
    def covariance(self) -> Matrix:
        return self.true_covariance

    @cached_property
    def second_moment(self) -> Matrix:
        scatter = self.true_covariance * ((self.n - 1) / self.n) if self.n > 1 else np.zeros((self.d, self.d))
        moment = scatter + np.outer(self.mean, self.mean)
        return moment / (float(moment.diagonal().max()) or 1.0)


class CloudStream:
    """Running sums for all metrics that need no points. Accepts batches (n_k, d) as `CovarianceAccumulator` does.

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

    @classmethod
    def union(cls, streams: Iterable[CloudStream]) -> CloudStream:
        """All points of several streams as one cloud."""
        first, *others = streams
        total = cls(first.sums.d, first.eps)
        for stream in (first, *others):
            total.merge(stream)
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
