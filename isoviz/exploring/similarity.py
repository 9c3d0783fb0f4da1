"""Similarity of two spaces, independent of their axes: layers of one model, or of two models on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import draw
from isoviz.metrics.copies import comparable_rows
from isoviz.metrics.moments import centre
from isoviz.readouts.cosines import overlap
from isoviz.readouts.image import Image

Measure = Literal["cka", "neighbours"]

MOST: Final = 2_000
"""Most rows compared; larger sets are sampled with seed 0."""
_ROUNDING: Final = 1e-12
_BLOCK: Final = 2**23  # numbers in memory at a time: 64 MiB
FEWEST: Final = 4
"""Fewest rows for the unbiased estimate."""

Points = NDArray[Any]


def matrix(firsts: Sequence[Points], seconds: Sequence[Points], measure: Measure) -> NDArray[np.float64]:
    """(a, b): each of a clouds against each of b, all with the same rows. For the same list twice, only half is computed.

    `cka`: linear CKA of (n, d) and (n, d') points, from the unbiased estimate of HSIC; nan if undefined. 1 for the same cloud up to
    rotation, shift and uniform scale, 0 on average for unrelated ones, even if n is small compared with d (where the biased estimate
    tends to 1). It can be slightly negative.

    `neighbours`: the mean share of each row's 10 nearest rows by cosine that both clouds have in common. Rows that the last of the first
    clouds repeats count once.

    Source: Kornblith et al. 2019 (CKA); Song et al. 2012, equation 5 (unbiased HSIC).
    """
    rows = sampled(len(firsts[0]))
    similarities = np.empty((len(firsts), len(seconds)))
    if measure == "neighbours":
        rows = rows[comparable_rows(firsts[-1][rows])[0]]
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
    clouds = [points[rows].astype(np.float64) for points in (firsts if seconds is firsts else [*firsts, *seconds])]
    return _cka(clouds)[: len(firsts), -len(seconds) :]


def sampled(n: int) -> NDArray[np.int64]:
    """Indices of the compared rows."""
    return draw(n, MOST)


def _cka(clouds: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """(c, c) between c clouds (n, d). HSIC is the inner product of two U-centred Gram matrices, so each Gram matrix is computed once, in
    blocks of rows.

    Source: Székely & Rizzo 2014, equation 2.6 (U-centring).
    """
    n = len(clouds[0])
    if n < FEWEST:
        return np.full((len(clouds), len(clouds)), np.nan)
    centred = [centre(points)[0] for points in clouds]
    row_sums = [points @ points.sum(axis=0) - np.einsum("ij,ij->i", points, points) for points in centred]
    hsic = np.zeros((len(clouds), len(clouds)))
    size = max(1, _BLOCK // (n * len(clouds)))
    for start in range(0, n, size):
        block = np.stack(
            [_u_centred(points, sums, start, size).ravel() for points, sums in zip(centred, row_sums, strict=True)]
        )
        hsic += block @ block.T
    hsic /= n * (n - 3)
    self_similarity = np.diag(hsic)
    # if all rows are equal, such as the first token before the first layer, only rounding is left
    spread = self_similarity > [(_ROUNDING * float(np.square(points).sum(axis=1).mean())) ** 2 for points in clouds]
    with np.errstate(divide="ignore", invalid="ignore"):
        similarities: NDArray[np.float64] = hsic / np.sqrt(np.outer(self_similarity, self_similarity))
    similarities[~np.outer(spread, spread)] = np.nan
    return similarities


def _u_centred(
    points: NDArray[np.float64], row_sums: NDArray[np.float64], start: int, size: int
) -> NDArray[np.float64]:
    """Rows `start` to `start + size` of a U-centred Gram matrix, from column `start` on. In an inner product, entries right of the
    diagonal block count twice, because the matrix is symmetric and the left columns are omitted."""
    n = len(points)
    gram = points[start : start + size] @ points[start:].T
    size = len(gram)
    gram -= (row_sums[start : start + size, None] + row_sums[start:]) / (n - 2)
    gram += row_sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(gram, 0)
    gram[:, size:] *= np.sqrt(2)
    return gram
