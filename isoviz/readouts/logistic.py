"""Logistic regression with an L2 penalty, for many penalties and folds: the optimum of scikit-learn's `LogisticRegression`, in a fraction
of its time where there are many dimensions or classes.

The weights lie in the span of the rows, so rows are first rotated to their principal directions, of which there are fewer than rows: with
n < d this is the dual problem. In these directions the Hessian is almost diagonal. Newton's steps come from conjugate gradients with its
diagonal as preconditioner (a truncated Newton method, Lin et al. 2008, J. Mach. Learn. Res. 9, 627–650), and each penalty starts
at the optimum of the one before.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating]

_STEPS: Final = 100
_PRODUCTS: Final = 500
"""Most Newton steps, and most products with the Hessian for one of them."""


def principal_directions(x: Matrix) -> Matrix:
    """(d, r) orthonormal directions that span the rows (n, d), by decreasing sum of squares."""
    n, d = x.shape
    values, vectors = np.linalg.eigh(x @ x.T if n < d else x.T @ x)
    kept = values > max(n, d) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    return x.T @ (vectors / np.sqrt(values)) if n < d else vectors


def fitted(
    x: Matrix, labels: NDArray[Any], C: float, weights: Matrix | None = None, *, tolerance: float
) -> Generator[None, None, Matrix]:
    """Weights (r + 1, classes) of the classes in order, the last row without penalty; yields after each Newton step.

    Args:
        x: (n, r) rows in their principal directions, in the precision to compute in.
        C: as in scikit-learn. Its model of two classes has one set of weights; this one has two, of which each bears half.
        weights: where to start.
        tolerance: of the gradient, as a share of its length at 0.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    target = np.eye(len(classes), dtype=x.dtype)[codes]
    rows = np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1)
    penalty = np.full((rows.shape[1], 1), 1 / (C / 2 if len(classes) == 2 else C), x.dtype)
    penalty[-1] = 0.0
    at_0 = float(np.linalg.norm(rows.T @ (1 / len(classes) - target)))
    w = np.zeros((rows.shape[1], len(classes)), x.dtype) if weights is None else weights
    loss, shares = _loss(rows, target, penalty, w)
    for _ in range(_STEPS):
        gradient = rows.T @ (shares - target) + penalty * w
        length = float(np.linalg.norm(gradient))
        if length <= tolerance * at_0:
            break
        step = _newton_step(rows, shares, penalty, gradient, min(0.1, (length / at_0) ** 0.5) * length)
        slope, size = float(np.vdot(step, gradient)), 1.0
        rounding = float(np.finfo(x.dtype).eps) * abs(loss)
        while (candidate := _loss(rows, target, penalty, w + size * step))[0] > loss + size * slope / 1e4 + rounding:
            size /= 2
            if size <= 1e-8:
                return w
        w, (loss, shares) = w + size * step, candidate
        yield
    return w


def _loss(rows: Matrix, target: Matrix, penalty: Matrix, w: Matrix) -> tuple[float, Matrix]:
    """The penalised loss, and the probabilities (n, classes)."""
    logits = rows @ w
    logits -= logits.max(axis=1, keepdims=True)
    chosen = float(np.vdot(logits, target))
    shares = np.exp(logits, out=logits)
    sums = shares.sum(axis=1, keepdims=True)
    shares /= sums
    return float(np.log(sums).sum(dtype=np.float64)) - chosen + 0.5 * float((penalty * w * w).sum()), shares


def _newton_step(rows: Matrix, shares: Matrix, penalty: Matrix, gradient: Matrix, tolerance: float) -> Matrix:
    diagonal = np.square(rows).T @ (shares * (1 - shares)) + penalty
    diagonal = np.maximum(diagonal, 1e-12 * diagonal.max())
    step, rest = np.zeros_like(gradient), -gradient
    scaled = rest / diagonal
    direction, product = scaled, float(np.vdot(rest, scaled))
    for _ in range(_PRODUCTS):
        weighted = shares * (rows @ direction)
        weighted -= shares * weighted.sum(axis=1, keepdims=True)
        curved = rows.T @ weighted + penalty * direction
        curvature = float(np.vdot(direction, curved))
        if curvature <= 0:
            break
        step = step + product / curvature * direction
        rest = rest - product / curvature * curved
        if np.linalg.norm(rest) <= tolerance:
            break
        scaled = rest / diagonal
        following = float(np.vdot(rest, scaled))
        direction, product = scaled + following / product * direction, following
    return step


def predicted(weights: Matrix, x: Matrix, labels: NDArray[Any]) -> NDArray[Any]:
    """(m,) the labels of rows (m, r), of those that the weights were fitted on."""
    return np.asarray(np.unique(labels)[(x @ weights[:-1] + weights[-1]).argmax(axis=1)])
