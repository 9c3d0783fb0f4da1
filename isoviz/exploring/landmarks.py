"""Landmarks of a map: clusters with their distinguishing words, and lines of equal density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST_CLUSTERED: Final = 5_000
"""Most points clustered by HDBSCAN; other points join the cluster of the nearest clustered point."""
WORDS: Final = 3
SHARES: Final = (0.9, 0.7, 0.5, 0.3, 0.1)
"""Approximate shares of points enclosed by the density lines."""
_CELLS: Final = 128
_FEWEST: Final = 20


def clusters(coordinates: NDArray[np.floating], seed: int = 0) -> NDArray[np.int64]:
    """(n,) cluster of each point of a map (n, k), the largest cluster first; −1 for points outside all clusters.

    These are clusters of the map, not of the space, and depend on the gaps that UMAP creates. The smallest has 4 % of the points.

    Source: Campello, Moulavi & Sander 2013 (HDBSCAN), by scikit-learn.
    """
    from scipy.spatial import KDTree
    from sklearn.cluster import HDBSCAN

    n = len(coordinates)
    if n < _FEWEST:
        return np.full(n, -1)
    clustered_points = (
        np.arange(n) if n <= MOST_CLUSTERED else np.random.default_rng(seed).choice(n, MOST_CLUSTERED, replace=False)
    )
    points = coordinates[clustered_points].astype(np.float64)
    found = HDBSCAN(min_cluster_size=max(5, len(clustered_points) // 25), copy=True).fit_predict(points)
    _, counts = np.unique(found[found >= 0], return_counts=True)
    ranks = np.append(np.argsort(np.argsort(-counts, kind="stable")), -1)  # −1 (no cluster) stays −1
    nearest = np.arange(n) if n == len(clustered_points) else KDTree(points).query(coordinates)[1]
    labels: NDArray[np.int64] = ranks[found[nearest]].astype(np.int64)
    return labels


def distinguishing_words(texts: Sequence[str], labels: NDArray[np.int64]) -> list[str]:
    """For each cluster, the words with the largest c-TF-IDF: `word, word, word`; empty if it has no words.

    The weight of word t in cluster c is tf(t, c) · log(1 + A / f(t)), with its share of the cluster's words, the average number of
    words per cluster, and its total number of occurrences.

    Source: Grootendorst 2022 (BERTopic), equation 2.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    count = int(labels.max(initial=-1)) + 1
    joined = [" ".join(texts[int(place)] for place in np.flatnonzero(labels == label)) for label in range(count)]
    vectorizer = CountVectorizer()
    try:
        counted = vectorizer.fit_transform(joined).toarray().astype(np.float64)
    except ValueError:  # no words: texts contain only numbers and symbols, or there are no clusters
        return [""] * count
    sizes, words = counted.sum(axis=1), vectorizer.get_feature_names_out()
    weights = counted / np.maximum(sizes, 1)[:, None] * np.log1p(sizes.mean() / counted.sum(axis=0))
    best = np.argsort(-weights, axis=1, kind="stable")[:, :WORDS]
    return [", ".join(words[place] for place in row if weights[label, place] > 0) for label, row in enumerate(best)]


def density_lines(coordinates: NDArray[np.floating]) -> list[tuple[float, list[NDArray[np.float64]]]]:
    """Lines of equal density of a map (n, 2): for each of `SHARES` the lines (m, 2) that enclose this share of the points.

    A histogram of 128 × 128 cells, smoothed by a Gaussian whose width follows Scott's rule. None for fewer than 20 points, or
    without spread.
    """
    from contourpy import LineType, contour_generator
    from scipy.ndimage import gaussian_filter

    points = np.asarray(coordinates, dtype=np.float64)
    width = points.std(axis=0) * len(points) ** (-1 / 6)
    if len(points) < _FEWEST or not (width > 0).all():
        return []
    low, high = points.min(axis=0) - 3 * width, points.max(axis=0) + 3 * width
    cell = (high - low) / _CELLS
    counts, *_ = np.histogram2d(points[:, 0], points[:, 1], bins=_CELLS, range=list(zip(low, high, strict=True)))
    density = gaussian_filter(counts, tuple(width / cell), mode="constant")
    x, y = (low[axis] + cell[axis] * (np.arange(_CELLS) + 0.5) for axis in (0, 1))
    of_points = density[tuple(np.clip(((points - low) / cell).astype(int), 0, _CELLS - 1).T)]
    generator = contour_generator(x, y, density.T, line_type=LineType.Separate)
    contours: list[tuple[float, list[NDArray[np.float64]]]] = []
    for share in SHARES:
        lines: Any = generator.lines(float(np.quantile(of_points, 1 - share)))  # the return type depends on line_type
        contours.append((share, list(lines)))
    return contours
