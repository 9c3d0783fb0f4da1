"""I1 and I2: how even the partition function Z(v) = Σ_i exp(v·w_i) is over the eigenvectors v of WᵀW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import float64_matrix, like, warn_undefined

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

_BLOCK = 4_000_000  # entries of W Vᵀ held at a time: 32 MB


def partition(
    weights: Points,
    signs: Literal["positive", "both"] = "positive",
    convention: Literal["definition", "published"] = "definition",
) -> tuple[Value, Value]:
    """(I1, I2) of output embeddings or a classifier W (N, d): I1 = min Z/max Z, I2 = √(Σ(Z − Z̄)²/(|V| Z̄²)).

    As in isotropy calibration (paper 003). Neither is scale-free:
    shrinking W drives I1 to 1 and I2 to 0, so show the row norms beside them.

    Args:
        weights: (N, d), rows are the vectors w_i.
        signs: an eigenvector's sign is arbitrary and Z(v) ≠ Z(−v): "positive" takes v·Σw_i >= 0, "both" takes
            v and −v.
        convention: "definition" as above; "published" gives paper 003's printed pairs, which are impossible
            under its own formulas: the rows instead of the columns of the matrix of eigenvectors, and no
            division by |V|.
    """
    if signs not in ("positive", "both"):
        raise InputError(f"signs must be 'positive' or 'both', got {signs!r}")
    if convention not in ("definition", "published"):
        raise InputError(f"convention must be 'definition' or 'published', got {convention!r}")
    w = float64_matrix(weights, "weights")
    if len(w) == 0:
        warn_undefined("partition", "there are no weight vectors")
        return like(weights, float("nan")), like(weights, float("nan"))
    # eigh, never eig: repeated eigenvalues are certain when N < d, and eig's vectors are then not orthogonal
    _, vectors = np.linalg.eigh(w.T @ w)
    vectors = vectors * np.where(w.sum(axis=0) @ vectors < 0, -1.0, 1.0)
    directions = vectors if convention == "published" else vectors.T
    if signs == "both":
        directions = np.concatenate([directions, -directions])
    log_z = _log_partition(w, directions)
    relative = np.exp(log_z - log_z.max())  # exp(v·w) alone overflows on hidden states
    mean = relative.mean()
    squares = float(((relative - mean) ** 2).sum()) / mean**2
    i2 = np.sqrt(squares if convention == "published" else squares / len(directions))
    return like(weights, float(relative.min())), like(weights, float(i2))


def _log_partition(w: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Z for each row of `directions`."""
    step = max(1, _BLOCK // len(w))
    parts = []
    for start in range(0, len(directions), step):
        logits = w @ directions[start : start + step].T
        top = logits.max(axis=0)
        parts.append(top + np.log(np.exp(logits - top).sum(axis=0)))
    return np.concatenate(parts)
