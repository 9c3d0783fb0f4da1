"""A cloud too big to hold, described from running sums: exact, in memory that does not grow with the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, is_tensor, symmetric_matrix, too_few, undefined
from isoviz.metrics.moments import Moments, sum_of_squares
from isoviz.metrics.scores import check_width, checked_zeta, plug_in_estimate, ratio_estimate
from isoviz.metrics.spectrum import cumulative_shares, effective_rank_of, eigenvalues
from isoviz.metrics.streaming import CovarianceAccumulator

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points

COLLAPSED = "all points are equal"


class CloudStream:
    """Takes batches (n_k, d) of float32 or float64 points; holds O(d²).

    Numpy batches are summed in float64; tensors stay on their device (see `CovarianceAccumulator`).

    Attributes:
        sums: count, mean and covariance.
        zeros: vectors of length zero so far, which have no cosine.
        eps: relative distance of two neighbouring numbers of the points' type.
    """

    def __init__(self, d: int, eps: float = float(np.finfo(np.float32).eps)) -> None:
        self.sums = CovarianceAccumulator(d)
        self.zeros = 0
        self.eps = eps
        self._direction: Any = np.zeros(d)  # Σ x/‖x‖

    @property
    def count(self) -> int:
        """n, points so far."""
        return self.sums.count

    def update(self, batch: Points) -> None:
        """Add the rows of a batch (n_k, d), all finite."""
        if len(batch) == 0:  # type: ignore[arg-type]
            return
        self.sums.update(batch)
        if is_tensor(batch):
            tensor: Any = batch
            lengths: Any = tensor.norm(dim=1)
            kept: Any = lengths > 0
            total = (tensor[kept] / lengths[kept][:, None]).double().sum(dim=0).cpu().numpy()
        else:
            x = np.asarray(batch, dtype=np.float64)
            biggest = np.abs(x).max(axis=1)  # first, so that squares neither overflow nor vanish
            kept = biggest > 0
            unit = x[kept] / biggest[kept][:, None]
            total = (1.0 / np.sqrt(np.einsum("ij,ij->i", unit, unit))) @ unit
        self._direction = self._direction + total
        self.zeros += len(kept) - int(kept.sum())

    def merge(self, other: CloudStream) -> None:
        """Add what another stream has seen; `other` is left as it is."""
        self.sums.merge(other.sums)
        self._direction = self._direction + other._direction
        self.zeros += other.zeros

    def reduce(self, gather: Callable[[Any], list[Any]]) -> CloudStream:
        """What all processes have seen together, the same on each of them; `gather` as in `CovarianceAccumulator.reduce`."""
        total = CloudStream(self.sums.d, self.eps)
        total.sums = self.sums.reduce(gather)
        for direction, zeros in gather((self._direction, self.zeros)):
            total._direction = total._direction + direction
            total.zeros += zeros
        return total

    def mean(self) -> NDArray[np.float64]:
        """(d,) mean activation."""
        return _as_float64(self.sums.mean)

    def covariance(self) -> NDArray[np.float64]:
        """(d, d), divisor n − 1, n >= 2."""
        return _as_float64(self.sums.covariance)

    def std(self) -> NDArray[np.float64]:
        """(d,) population standard deviation (divisor n), n >= 2."""
        return np.sqrt(np.clip(self.covariance().diagonal(), 0, None) * ((self.count - 1) / self.count))

    def mean_abs_correlation(self) -> float | None:
        """Mean |ρ| of distinct dimensions that vary (above 1e-12 of the largest σ), None where fewer than two do; n >= 2."""
        std = self.std()
        varies = std > 1e-12 * std.max()
        count = int(varies.sum())
        if count < 2:
            return None
        covariance = self.covariance()[np.ix_(varies, varies)]
        scale = np.sqrt(covariance.diagonal())
        magnitude = np.minimum(np.abs(covariance / scale[:, None] / scale), 1.0)
        return float((magnitude.sum() - magnitude.diagonal().sum()) / (count * (count - 1)))

    def isoscore_star(self, shrinkage_cov: Points, zeta: float) -> Estimate:
        """IsoScore* of all points so far, as `isoviz.metrics.isoscore_star` of them held together; undefined with its reason.

        Args:
            shrinkage_cov: Σ_S, (d, d), symmetric positive semidefinite, divisor n − 1.
            zeta: weight of Σ_S, in [0, 1].

        Raises:
            InputError: (a ValueError) Σ_S of another shape or not positive semidefinite, ζ outside [0, 1].
        """
        zeta = checked_zeta(zeta)
        shrinkage = symmetric_matrix(shrinkage_cov, "shrinkage_cov")
        n, d = self.count, self.sums.d
        check_width(shrinkage.shape[0], d)
        if n < 2:
            return undefined(too_few(n))
        covariance = self.covariance()
        mixed = (1 - zeta) * covariance + zeta * shrinkage
        biggest = float(mixed.diagonal().max())
        scaled = mixed / (biggest or 1.0)
        trace = float(scaled.diagonal().sum())
        # Σ_S holds a collapsed cloud up, as long as it weighs anything
        collapsed = biggest == 0 or (zeta == 0 and self._collapsed(covariance))
        return plug_in_estimate(Moments(n, d, trace, sum_of_squares(scaled), None, None, collapsed))

    def describe(self) -> dict[str, Any]:
        """n, d, n_per_d, isoscore, ev, mean_cosine, participation_ratio, effective_rank and warnings, as `isoviz.metrics.describe`
        names them; what is undefined is None, with its reason."""
        n, d = self.count, self.sums.d
        notes: list[str] = []
        score = ratio = rank = undefined(too_few(n))
        ev: list[float] | None = None
        if n >= 2:
            matrix = self.covariance()
            variances = matrix.diagonal()
            collapsed = self._collapsed(matrix)
            unit = float(variances.max()) or 1.0  # fourth powers leave the range of float64 before the points do
            scaled = matrix / unit
            moments = Moments(n, d, float(scaled.diagonal().sum()), sum_of_squares(scaled), None, scaled, collapsed)
            score, ratio, rank = plug_in_estimate(moments), ratio_estimate(moments), undefined(COLLAPSED)
            if not collapsed:
                spectrum = eigenvalues(scaled)
                rank = effective_rank_of(spectrum)
                ev = [float(share) for share in cumulative_shares(spectrum, min(n, d, 50))]
                if n < 5 * d:
                    notes.append(
                        f"n = {n} points in d = {d} dimensions, n/d = {n / d:.2g} below 5: isoscore, "
                        "participation_ratio and effective_rank read low and ev high"
                    )
        if self.zeros:
            notes.append(f"mean_cosine leaves out {self.zeros} zero vectors")
        if ev is None:
            notes.append(f"ev is undefined: {rank.problem}")

        def value_of(name: str, estimate: Estimate) -> float | None:
            if estimate.problem:
                notes.append(f"{name} is undefined: {estimate.problem}")
                return None
            return float(estimate.value)

        return {
            "n": n,
            "d": d,
            "n_per_d": n / d,
            "isoscore": value_of("isoscore", score),
            "ev": ev,
            "mean_cosine": value_of("mean_cosine", self._mean_cosine()),
            "participation_ratio": value_of("participation_ratio", ratio),
            "effective_rank": value_of("effective_rank", rank),
            "warnings": notes,
        }

    def _collapsed(self, covariance: NDArray[np.float64]) -> bool:
        return bool(np.all(covariance.diagonal() <= (self.eps * self.mean()) ** 2))

    def _mean_cosine(self) -> Estimate:
        m = self.count - self.zeros
        if m < 2:
            return undefined(f"it needs at least 2 vectors that are not zero, got {m}")
        return Estimate(float((self._direction @ self._direction - m) / (m * (m - 1))))


def _as_float64(value: Any) -> NDArray[np.float64]:
    return value.double().cpu().numpy() if is_tensor(value) else np.asarray(value, dtype=np.float64)
