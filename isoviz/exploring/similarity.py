"""How alike two spaces are, whatever their axes: layers of one model, or of two models that read the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre
from isoviz.readouts.cosines import overlap
from isoviz.readouts.image import Image

Measure = Literal["cka", "neighbours"]

MOST: Final = 2_000
"""Rows that are compared at most; of more, as many are drawn with seed 0."""
_ROUNDING: Final = 1e-12
FEWEST: Final = 4
"""Rows that the unbiased estimate needs."""

Points = NDArray[Any]


def debiased_cka(first: Points, second: Points) -> float:
    """Linear CKA of (n, d) and (n, d') points of the same n rows, from the unbiased estimate of HSIC; nan where undefined.

    1 for the same cloud up to rotation, shift and uniform scale, 0 on average for unrelated ones, also where n is small beside d
    (there the biased estimate tends to 1). It can be slightly negative. Nothing of size n × n is kept.

    Source: Kornblith et al. 2019 (CKA); Song et al. 2012, equation 5 (unbiased HSIC).
    """
    return float(matrix([first], [second], "cka")[0, 0])


def matrix(firsts: Sequence[Points], seconds: Sequence[Points], measure: Measure) -> NDArray[np.float64]:
    """(a, b): each of a clouds against each of b, all of the same rows. Of the same list twice only half is computed.

    `cka`: see `debiased_cka`. `neighbours`: the mean share of a row's 10 nearest rows by cosine that are the same in both.
    """
    rows = drawn(len(firsts[0]))
    similarities = np.empty((len(firsts), len(seconds)))
    if measure == "neighbours":
        images = [
            [Image(np.asarray(points[rows], np.promote_types(points.dtype, np.float32))) for points in clouds]
            for clouds in (firsts, seconds)
        ]
        for i, image in enumerate(images[0]):
            for j, other_image in enumerate(images[1]):
                if seconds is firsts and j < i:
                    similarities[i, j] = similarities[j, i]
                    continue
                value = overlap(image, other_image).value
                similarities[i, j] = np.nan if value is None else value
        return similarities
    centred = [[centre(points[rows].astype(np.float64))[0] for points in clouds] for clouds in (firsts, seconds)]
    own = [np.array([_hsic(points, points) for points in clouds]) for clouds in centred]
    # where all rows are one point, what is left is rounding: the first token before the first layer
    floors = [
        [(_ROUNDING * float(np.square(points[rows], dtype=np.float64).sum(axis=1).mean())) ** 2 for points in clouds]
        for clouds in (firsts, seconds)
    ]
    for i, points_a in enumerate(centred[0]):
        for j, points_b in enumerate(centred[1]):
            if seconds is firsts and j < i:
                similarities[i, j] = similarities[j, i]
                continue
            scale = own[0][i] * own[1][j]
            alive = own[0][i] > floors[0][i] and own[1][j] > floors[1][j]
            similarities[i, j] = _hsic(points_a, points_b) / np.sqrt(scale) if alive else np.nan
    return similarities


def drawn(n: int) -> NDArray[np.int64]:
    """Which of n rows are compared."""
    return np.arange(n) if n <= MOST else np.sort(np.random.default_rng(0).choice(n, MOST, replace=False))


def _hsic(x: Points, y: Points) -> float:
    """Unbiased HSIC of linear kernels, from the points themselves: with K̃ = XXᵀ without its diagonal, K̃1 = X(Xᵀ1) − diag(XXᵀ)."""
    n = len(x)
    if n < FEWEST:
        return np.nan
    own_x, own_y = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    sums_x, sums_y = x @ x.sum(axis=0) - own_x, y @ y.sum(axis=0) - own_y
    trace = float(((x.T @ y) ** 2).sum()) - float(own_x @ own_y)
    both = float(sums_x.sum() * sums_y.sum()) / ((n - 1) * (n - 2))
    return (trace + both - 2 / (n - 2) * float(sums_x @ sums_y)) / (n * (n - 3))
