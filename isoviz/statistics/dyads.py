"""Shares of pairs, of which two with a unit in common depend on each other: cosines of all pairs of rows, for example."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Variance(NamedTuple):
    """A variance, the degrees of freedom of its estimate (Satterthwaite 1946: on how many units it rests, minus one), and the units."""

    value: float
    freedom: float
    units: int

    @property
    def spread(self) -> float:
        """Half the width of the 95 % interval."""
        from scipy import stats

        return float(stats.t.ppf(0.975, self.freedom)) * self.value**0.5


def variance(terms: NDArray[Any], left: NDArray[np.intp], right: NDArray[np.intp]) -> Variance:
    """Variance of a sum over pairs, if only pairs without a common unit are independent.

    The dyadic cluster-robust variance (Fafchamps & Gubert 2007, doi:10.1016/j.jdeveco.2006.05.005; Aronow, Samii & Assenova 2015,
    doi:10.1093/pan/mpv018): squares of each unit's sum, minus those of each two units' sum, which are counted twice. It is never less
    than if no unit had an effect of its own.

    Args:
        terms: (l, r) each pair's term, with mean 0; 0 where there is no pair.
        left, right: (l,) and (r,) unit of each row and of each column, numbered from 0.
    """
    from scipy.sparse import csr_array

    count = int(max(left.max(), right.max())) + 1
    sums: NDArray[Any] = np.bincount(left, terms.sum(axis=1, dtype=np.float64), count)
    sums += np.bincount(right, terms.sum(axis=0, dtype=np.float64), count)
    dyads, ends = terms, list[NDArray[np.intp]]()
    for units in (left, right):  # each unit's rows added up, then its columns
        used, place = np.unique(units, return_inverse=True)
        dyads = (csr_array((np.ones(len(units), terms.dtype), (place, np.arange(len(units))))) @ dyads).T
        ends.append(used)
    common, i, j = np.intersect1d(ends[0], ends[1], return_indices=True)
    both = dyads[np.ix_(i, j)]
    within = both.diagonal().astype(np.float64)
    sums[common] -= within  # a pair within a unit was added from both ends
    squares, own, total = np.einsum("ij,ij", dyads, dyads, dtype=np.float64), (within**2).sum(), float((sums**2).sum())
    independent = float(squares + np.einsum("ij,ji", both, both, dtype=np.float64) - own)
    value = max(total + float(own) - independent, independent) * count / max(count - 1, 1)
    freedom = total**2 / float((sums**4).sum()) - 1 if total else count - 1
    return Variance(value, max(freedom, 1.0), count)


def effective(share: float, variance: Variance) -> float:
    """The number of independent pairs of which a share would have this variance, fewer for few degrees of freedom (Korn & Graubard 1998).

    It is at least half the number of units, because the variance of a mean over pairs is at most that many times smaller than one pair's
    (Hoeffding 1948, doi:10.1214/aoms/1177730196); without variance it is their number.
    """
    from scipy import stats

    spread = share * (1 - share)
    if spread < 1e-12 or variance.value < 1e-24:
        return float(variance.units)
    few = (1.96 / float(stats.t.ppf(0.975, variance.freedom))) ** 2
    return max(few * spread / variance.value, variance.units / 2)


def share_interval(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share of n independent pairs, which need not be a whole number (Clopper & Pearson 1934)."""
    from scipy import stats

    low = float(stats.beta.ppf(0.025, n * share, n * (1 - share) + 1)) if share > 1e-12 else 0.0
    high = float(stats.beta.ppf(0.975, n * share + 1, n * (1 - share))) if share < 1 - 1e-12 else 1.0
    return low, high


def quantile_interval(share: float, n: float) -> tuple[float | None, float | None]:
    """Between which shares of n independent pairs the population's quantile lies, at 95 %; None where they are too few to tell."""
    from scipy import optimize, special

    def outside(seen: float, above: int) -> float:  # at least (1) or at most (0) this share of the pairs lies below
        return float(special.betainc(n * seen + 1 - above, n * (1 - seen) + above, share))

    low = optimize.brentq(lambda seen: outside(seen, 0) - 0.975, 0, share) if (1 - share) ** n < 0.025 else None
    high = optimize.brentq(lambda seen: outside(seen, 1) - 0.025, share, 1) if share**n < 0.025 else None
    return low, high
