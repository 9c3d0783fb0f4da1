"""A cloud that arrives in batches, or from several processes: exact running sums, whose memory does not grow with its points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import (
    Array,
    Estimate,
    Points,
    check_shape,
    float64_matrix,
    is_tensor,
    resolution,
    sum_dtype,
    too_few,
    warn_undefined,
    working_dtype,
)
from isoviz.metrics.moments import Moments, covariance_moments, estimated, plug_in_estimate, unbiased_estimate
from isoviz.metrics.sample import Directions, Matrix, Sample, as_float64, directions_of

_SUMS = ("anchor", "offset", "scatter", "cubic", "quartic", "directions")


class CovarianceAccumulator:
    """Running sums for all metrics that need no points. Accepts batches (n_k, d); stores the count, mean and Σx̃x̃ᵀ, Σ‖x̃‖²x̃ and
    Σ‖x̃‖⁴ for the unbiased score, and Σx/‖x‖ for the mean cosine.

    Each batch is centred separately and then merged (Chan et al. 1983; the third and fourth sums by the same expansion). The
    mean is stored as an offset from the first point, which is an exact anchor: a mean of 10⁴ is rounded to 10⁻¹², an error that
    would enter every shift between batches. The covariance and the scores therefore agree to 1e-12 relative for every split of
    the data, at any distance from the origin.

    Tensors stay on their device: products in their precision, sums in float64 (on the CPU for Apple's GPU, which has
    none). All batches are numpy, or all are tensors on one device.

    Attributes:
        d: dimensions.
        count: points so far.
        zeros: vectors of length zero among them, which have no cosine.
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.count = 0
        self.zeros = 0
        self._eps = 0.0  # the coarsest resolution among the batches
        self._anchor: Any = None  # (d,): the first point
        self._offset: Any = None  # (d,): the mean minus the anchor
        self._scatter: Any = None  # (d, d)
        self._cubic: Any = None  # (d,): Σ‖x̃‖²x̃
        self._quartic: Any = None  # 0-d: Σ‖x̃‖⁴
        self._directions: Any = None  # (d,): Σx/‖x‖

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
            part._directions, part.zeros = directions_of(x)
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

        with torch.no_grad(), torch.autocast(batch.device.type, enabled=False):
            x = batch.detach().to(working_dtype(batch))
            wide, home = sum_dtype(batch.device), batch.device
            if wide != torch.float64:
                home, wide = torch.device("cpu"), torch.float64
            lengths = x.norm(dim=1)
            self.zeros = int((lengths == 0).sum())
            unit = x / torch.where(lengths > 0, lengths, torch.ones_like(lengths))[:, None]
            self._directions = unit.to(home).to(wide).sum(dim=0)
            anchor = x[0].clone()
            x = x - anchor
            offset = x.mean(0)
            x -= offset
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
        self.zeros += other.zeros
        if self.count == 0:
            self.count = other.count
            for name in _SUMS:
                setattr(self, f"_{name}", getattr(other, f"_{name}"))
            return
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
        self._directions = self._directions + other._directions

    @classmethod
    def union(cls, parts: Iterable[CovarianceAccumulator]) -> CovarianceAccumulator:
        """All points of several accumulators, at least one, as one cloud."""
        first, *others = parts
        total = cls(first.d)
        for part in (first, *others):
            total.merge(part)
        return total

    def reduce(
        self, gather: Callable[[CovarianceAccumulator], Sequence[CovarianceAccumulator]]
    ) -> CovarianceAccumulator:
        """The accumulator over the points of all processes, as numpy arrays, bitwise identical on each; `self` does not change.

        Args:
            gather: takes this process's accumulator (in numpy arrays) and returns those of all processes in rank order: for
                accelerate `lambda sums: gather_object([sums])`, else a call of `torch.distributed.all_gather_object`. Every
                process must call it, even one without points.
        """
        here = CovarianceAccumulator(self.d)
        here.merge(self)
        for name in _SUMS if self.count else ():
            value = getattr(self, f"_{name}")
            setattr(here, f"_{name}", np.asarray(value.cpu() if is_tensor(value) else value))
        return CovarianceAccumulator.union(gather(here))

    def sample(self, **inputs: Any) -> StreamedSample:
        """The points so far as a sample for metrics, with the additional inputs that some need (`Metric.inputs`)."""
        return StreamedSample(self, inputs)

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

    def isoscore(self) -> float:
        """IsoScore of everything added so far."""
        return self._score("isoscore", plug_in_estimate)

    def isoscore_unbiased(self) -> float:
        """The unbiased score of everything added so far (see `isoviz.metrics.isoscore_unbiased`)."""
        return self._score("isoscore_unbiased", unbiased_estimate)

    def _score(self, metric: str, estimator: Callable[[Moments], Estimate]) -> float:
        estimate = estimated(estimator, self.sample().moments, self.count)
        if estimate.problem:
            warn_undefined(metric, estimate.problem, depth=2)
        return float(estimate.value)


class StreamedSample(Sample):
    """Running sums: everything except the points, in memory that does not grow with their number."""

    def __init__(self, sums: CovarianceAccumulator, inputs: Mapping[str, Any]) -> None:
        self.points = None
        self.n, self.d = sums.count, sums.d
        self.eps = sums._eps
        self.inputs = dict(inputs)
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
        unit = float(variances.max()) or 1.0
        total = float(self._sums._quartic)
        quartic = total / ((self.n - 1) * unit) / unit if 1e-280 < total < np.inf else float("nan")
        return replace(covariance_moments(covariance), n=self.n, quartic=quartic, collapsed=collapsed)

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

    @cached_property
    def directions(self) -> Directions:
        if self.n == 0:
            return Directions(np.zeros(self.d), 0)
        return Directions(as_float64(self._sums._directions), self._sums.zeros)
