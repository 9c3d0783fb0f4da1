"""I1 and I2: how even the partition function Z(v) = Σ_i exp(v·w_i) is over the eigenvectors v of WᵀW; row norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import float64_matrix, like, warn_undefined
from isoviz.metrics.moments import centre as without_mean

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Array, Points, Value

_BLOCK = 4_000_000  # entries of W Vᵀ held at a time: 32 MB


def partition(
    weights: Points,
    signs: Literal["positive", "both"] = "positive",
    convention: Literal["definition", "published"] = "definition",
    scale_free: bool = False,
    centre: bool = False,
) -> tuple[Value, Value]:
    """(I1, I2) of output embeddings or a classifier W (N, d): I1 = min Z/max Z, I2 = √(Σ(Z − Z̄)²/(|V| Z̄²)).

    As in isotropy calibration (paper 003). By default neither is scale-free: shrinking W drives I1 to 1 and I2 to 0,
    so show `row_norms` beside them, or ask for `scale_free`. I1 is driven by the mean of the rows; `centre` shows
    their shape alone. Whatever W, I2 ≤ (1 − I1)/(2√I1) for the definition.

    The eigenvectors of a repeated eigenvalue other than 0 are arbitrary within their space, and (I1, I2) with them:
    an isotropic W has no preferred directions to try. In the null space Z = N whatever the vectors, except in the
    published convention, whose rows mix it with the rest: there N < d alone makes the pair depend on the solver.

    Args:
        weights: (N, d), rows are the vectors w_i.
        signs: an eigenvector's sign is arbitrary and Z(v) ≠ Z(−v): "positive" takes v·Σw_i >= 0, "both" takes
            v and −v. Centred rows sum to zero, so "positive" then orients v by the row that reaches furthest along it.
        convention: "definition" as above; "published" gives paper 003's printed pairs, which are impossible
            under its own formulas: the rows instead of the columns of the matrix of eigenvectors, and no
            division by |V|.
        scale_free: divide W (centred first, if asked for) by the root mean square of its row norms. Undefined for W = 0.
        centre: subtract the mean row first.

    Raises:
        InputError: (a ValueError) unknown option, wrong shape, or non-finite entries.
    """
    if signs not in ("positive", "both"):
        raise InputError(f"signs must be 'positive' or 'both', got {signs!r}")
    if convention not in ("definition", "published"):
        raise InputError(f"convention must be 'definition' or 'published', got {convention!r}")
    w = float64_matrix(weights, "weights")
    problem = None if len(w) else "there are no weight vectors"
    if problem is None and centre:
        w = without_mean(w)[0]
    biggest = float(np.abs(w).max()) if len(w) else 0.0
    if problem is None and scale_free:
        if biggest == 0:
            problem = "all rows are " + ("equal" if centre else "zero") + ", they have no scale"
        else:
            w = w / biggest  # first, so that squares neither overflow nor vanish
            w = w / np.sqrt(np.einsum("ij,ij->", w, w) / len(w))
            biggest = 1.0
    if problem is not None:
        warn_undefined("partition", problem)
        return like(weights, float("nan")), like(weights, float("nan"))
    vectors = _eigenvectors(w, biggest, centre)
    directions = vectors if convention == "published" else vectors.T
    if signs == "both":
        directions = np.concatenate([directions, -directions])
    log_z = _log_partition(w, directions)
    relative = np.exp(log_z - log_z.max())  # exp(v·w) alone overflows on hidden states
    mean = relative.mean()
    squares = float(((relative - mean) ** 2).sum()) / mean**2
    i2 = np.sqrt(squares if convention == "published" else squares / len(directions))
    return like(weights, float(relative.min())), like(weights, float(i2))


def row_norms(weights: Points) -> Array:
    """‖w_i‖ of each row of W (N, d), shape (N,): what I1 and I2 depend on most, to be shown beside them.

    Finite for finite rows unless the norm itself leaves the range of float64.
    """
    w = float64_matrix(weights, "weights")
    biggest = np.abs(w).max(axis=1)
    unit = w / np.where(biggest > 0, biggest, 1.0)[:, None]
    return like(weights, biggest * np.sqrt(np.einsum("ij,ij->i", unit, unit)))


def _eigenvectors(w: NDArray[np.float64], biggest: float, centred: bool) -> NDArray[np.float64]:
    """The columns v of WᵀW, each turned to the side that `partition` documents."""
    if not 1e-100 < biggest < 1e100 and biggest > 0:  # squares would leave the range of float64; vectors have no unit
        w = w / biggest
    # eigh, never eig: repeated eigenvalues are certain when N < d, and eig's vectors are then not orthogonal
    vectors: NDArray[np.float64] = np.linalg.eigh(w.T @ w)[1]
    if not centred:
        return vectors * np.where(w.sum(axis=0) @ vectors < 0, -1.0, 1.0)
    reach = w @ vectors
    furthest = np.take_along_axis(reach, np.abs(reach).argmax(axis=0)[None], axis=0)[0]
    return vectors * np.where(furthest < 0, -1.0, 1.0)


def _log_partition(w: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Z for each row of `directions`."""
    step = max(1, _BLOCK // len(w))
    parts = []
    for start in range(0, len(directions), step):
        logits = w @ directions[start : start + step].T
        top = logits.max(axis=0)
        parts.append(top + np.log(np.exp(logits - top).sum(axis=0)))
    return np.concatenate(parts)
