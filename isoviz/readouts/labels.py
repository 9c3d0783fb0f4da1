"""How well vectors separate labels: nearest neighbours, silhouette, a linear probe, clusters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Mean, MutualInformation, Statistic

NEIGHBOURS: Final = 10
FOLDS: Final = 5
_NEWTON: Final = 1_600
"""Coefficients up to which a linear head is found by Newton's method, whose steps cost their number cubed."""


def neighbours_and_silhouette(image: Image, labels: NDArray[np.int64]) -> dict[str, Statistic]:
    """Both from the cosines of all pairs of `image.sample`.

    Each row is given the commonest label of its nearest other rows (`neighbours_for` says how many); of equally common labels
    that of the more similar rows. A row that is alone with its label has silhouette 0. Both are undefined where the sample has
    one label only.
    """
    mine = labels[image.sample]
    classes, codes = np.unique(mine, return_inverse=True)
    if len(classes) < 2:
        undefined = Mean(np.full(len(mine), np.nan))
        return {"knn": undefined, "silhouette": undefined}
    member = np.eye(len(classes), dtype=np.float32)[codes]
    near = image.nearest(neighbours_for(codes, itself=True))
    votes = member[near].sum(axis=1)
    similarity = np.take_along_axis(image.cosines, near, axis=1)
    support = np.einsum("ij,ijk->ik", similarity, member[near])
    guessed = (votes + 1e-3 * support / (1 + np.abs(support).max(axis=1, keepdims=True))).argmax(axis=1)
    return {"knn": Mean(guessed == codes), "silhouette": Mean(_silhouettes(image.cosines, codes, member))}


def neighbours_for(codes: NDArray[np.int64], *, itself: bool = False) -> int:
    """k of k-NN: 10, or the median number of rows that share a label, so that a row of a small class can find enough of them.

    Args:
        itself: whether a row is among those that are searched and does not count.
    """
    sizes = np.unique(codes, return_counts=True)[1]
    return min(NEIGHBOURS, max(1, int(np.median(sizes)) - itself), len(codes) - itself)


def _silhouettes(cosines: NDArray[np.float32], codes: NDArray[np.int64], member: NDArray[np.float32]) -> NDArray[Any]:
    """(m,) of Rousseeuw (1987) with the distance 1 − cosine."""
    sizes = member.sum(axis=0).astype(np.float64)
    rows = np.arange(len(codes))
    sums = sizes - cosines @ member  # of the distances to each class
    own_size = sizes[codes]
    itself = 1.0 - cosines.diagonal()  # 0, or 1 where a vector has no direction
    inside = (sums[rows, codes] - itself) / np.maximum(own_size - 1, 1)
    others = sums / sizes
    others[rows, codes] = np.inf
    outside = others.min(axis=1)
    larger = np.maximum(inside, outside)
    values = np.divide(outside - inside, larger, out=np.zeros(len(codes)), where=larger > 1e-6)
    return np.where(own_size > 1, values, 0.0)


def probe(image: Image, labels: NDArray[np.int64]) -> Statistic:
    """Share of rows that a linear head fitted on the other folds gets right."""
    right = np.zeros(len(labels), dtype=bool)
    for train, test in folds(labels):
        right[test] = (
            linear_head(image.points[train], labels[train], image.points[test], "classification") == labels[test]
        )
    return Mean(right)


def clusters(image: Image, labels: NDArray[np.int64]) -> Statistic:
    """k-means on vectors of length 1, with as many clusters as there are labels and four starts (seed 0)."""
    from sklearn.cluster import KMeans

    classes, codes = np.unique(labels, return_inverse=True)
    clusters_of_rows = KMeans(len(classes), n_init=4, random_state=0).fit_predict(image.unit)
    return MutualInformation(codes, clusters_of_rows)


def folds(labels: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Five folds that keep the labels' shares, fewer only where no label has five rows (seed 0)."""
    from sklearn.model_selection import KFold, StratifiedKFold

    commonest = int(np.unique(labels, return_counts=True)[1].max())
    kind = StratifiedKFold if commonest >= 2 else KFold
    count = min(FOLDS, commonest if commonest >= 2 else len(labels))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(kind(count, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels))


def cross_fitted(
    points: NDArray[Any], labels: NDArray[np.int64], transform: Callable[[NDArray[Any]], Callable[[Any], Any]]
) -> dict[str, tuple[Statistic, Statistic]]:
    """A linear probe and nearest neighbours before and after a transform, each row read by what it had no part in.

    For sets too small to be divided into thirds: in each fold the transform, the probe and the neighbours are those of the
    other folds.

    Args:
        transform: fits on (n, d) points and returns what maps others.
    """
    names = ("probe", "knn")
    right = {name: np.zeros((2, len(labels)), dtype=bool) for name in names}
    for train, test in folds(labels):
        mapped = transform(points[train])
        for index, (known, asked) in enumerate(
            ((points[train], points[test]), (mapped(points[train]), mapped(points[test])))
        ):
            known, asked = _alike(known, asked)
            guessed = linear_head(known, labels[train], asked, "classification")
            right["probe"][index, test] = guessed == labels[test]
            right["knn"][index, test] = _of_neighbours(known, labels[train], asked) == labels[test]
    return {name: (Mean(before), Mean(after)) for name, (before, after) in right.items()}


def _alike(known: Any, asked: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """In the same unit and precision."""
    both = Image(np.concatenate([known, asked]))
    return both.points[: len(known)], both.points[len(known) :]


def _of_neighbours(known: NDArray[Any], labels: NDArray[np.int64], asked: NDArray[Any]) -> NDArray[np.int64]:
    from sklearn.neighbors import KNeighborsClassifier

    predictions = (
        KNeighborsClassifier(neighbours_for(labels), metric="cosine", algorithm="brute")
        .fit(known, labels)
        .predict(asked)
    )
    return np.asarray(predictions)


def linear_head(train: Any, labels: NDArray[Any], points: Any, kind: str, *, width: int | None = None) -> NDArray[Any]:
    """Predictions (m,) for `points` (m, k) of a linear head fitted on (n, k) `train`.

    Logistic regression with scikit-learn's default L2 penalty (C = 1), or ridge regression (α = 1) for numbers, on vectors
    that are centred and divided by one common number so that each has mean squared length k: an unpenalised head could
    undo every invertible transform, and a penalty that saw the unit would call a change of unit an effect.

    Args:
        width: k, where columns of zeros were left out; default: the columns there are.
    """
    x, y = np.asarray(train, dtype=np.float64), np.asarray(points, dtype=np.float64)
    mean = x.mean(axis=0)
    x, y = x - mean, y - mean
    unit = float(np.sqrt(np.einsum("ij,ij->", x, x) / (len(x) * (width or x.shape[1])))) or 1.0
    x, y = x / unit, y / unit
    classes = np.unique(labels)
    if len(classes) == 1:
        return np.full(len(y), classes[0])
    if kind == "regression":
        from sklearn.linear_model import Ridge

        return np.asarray(Ridge(alpha=1.0, solver="cholesky").fit(x, labels).predict(y))
    from sklearn.linear_model import LogisticRegression

    # Newton's method ends at the optimum to the last digits, so that the answer is the same in every orthonormal basis
    small = x.shape[1] * (1 if len(classes) == 2 else len(classes)) <= _NEWTON
    solver = "newton-cholesky" if small else "lbfgs"
    return np.asarray(
        LogisticRegression(solver=solver, max_iter=1000, tol=1e-10 if small else 1e-6).fit(x, labels).predict(y)
    )
