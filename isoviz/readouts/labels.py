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
"""Most coefficients for which a linear head is fitted by Newton's method, whose steps cost their number cubed."""


def neighbours_and_silhouette(image: Image, labels: NDArray[np.int64]) -> dict[str, Statistic]:
    """Both from the cosines of all pairs of `image.sample`.

    Each row gets the most common label of its nearest other rows (`neighbours_for` says how many); in a tie, the label of the more
    similar rows. A row whose label no other row has gets silhouette 0. Both are undefined if the sample has only one label.
    """
    sample_labels = labels[image.sample]
    classes, codes = np.unique(sample_labels, return_inverse=True)
    if len(classes) < 2:
        undefined = Mean(np.full(len(sample_labels), np.nan))
        return {"knn": undefined, "silhouette": undefined}
    member = np.eye(len(classes), dtype=np.float32)[codes]
    near = image.nearest(neighbours_for(codes, itself=True))
    votes = member[near].sum(axis=1)
    similarity = np.take_along_axis(image.cosines, near, axis=1)
    support = np.einsum("ij,ijk->ik", similarity, member[near])
    predicted = (votes + 1e-3 * support / (1 + np.abs(support).max(axis=1, keepdims=True))).argmax(axis=1)
    return {"knn": Mean(predicted == codes), "silhouette": Mean(_silhouettes(image.cosines, codes, member))}


def neighbours_for(codes: NDArray[np.int64], *, itself: bool = False) -> int:
    """k of k-NN: 10, or the median number of rows per label if smaller, so that rows of small classes find enough neighbours.

    Args:
        itself: whether the searched rows include the row itself, which does not count.
    """
    sizes = np.unique(codes, return_counts=True)[1]
    return min(NEIGHBOURS, max(1, int(np.median(sizes)) - itself), len(codes) - itself)


def _silhouettes(cosines: NDArray[np.float32], codes: NDArray[np.int64], member: NDArray[np.float32]) -> NDArray[Any]:
    """(m,) silhouettes (Rousseeuw 1987) with the distance 1 − cosine."""
    sizes = member.sum(axis=0).astype(np.float64)
    rows = np.arange(len(codes))
    sums = sizes - cosines @ member  # of the distances to each class
    own_size = sizes[codes]
    itself = 1.0 - cosines.diagonal()  # 0, or 1 where a vector has no direction
    within = (sums[rows, codes] - itself) / np.maximum(own_size - 1, 1)
    others = sums / sizes
    others[rows, codes] = np.inf
    nearest_other = others.min(axis=1)
    larger = np.maximum(within, nearest_other)
    values = np.divide(nearest_other - within, larger, out=np.zeros(len(codes)), where=larger > 1e-6)
    return np.where(own_size > 1, values, 0.0)


def probe(image: Image, labels: NDArray[np.int64]) -> Statistic:
    """Share of rows that a linear head fitted on the other folds classifies correctly."""
    correct = np.zeros(len(labels), dtype=bool)
    for train, test in folds(labels):
        correct[test] = (
            linear_head(image.points[train], labels[train], image.points[test], "classification") == labels[test]
        )
    return Mean(correct)


def clusters(image: Image, labels: NDArray[np.int64]) -> Statistic:
    """k-means on vectors of length 1, with one cluster per label and four starts (seed 0)."""
    from sklearn.cluster import KMeans

    classes, codes = np.unique(labels, return_inverse=True)
    clusters_of_rows = KMeans(len(classes), n_init=4, random_state=0).fit_predict(image.unit)
    return MutualInformation(codes, clusters_of_rows)


def folds(labels: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Five stratified folds (seed 0); fewer only if no label has five rows."""
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
    """A linear probe and nearest neighbours before and after a transform; each row is predicted from the other folds.

    For sets too small to be divided into thirds. The transform, the probe and the neighbours of a fold come from the other folds.

    Args:
        transform: fits on (n, d) points and returns the function that maps others.
    """
    names = ("probe", "knn")
    correct = {name: np.zeros((2, len(labels)), dtype=bool) for name in names}
    for train, test in folds(labels):
        mapped = transform(points[train])
        for index, (train_points, test_points) in enumerate(
            ((points[train], points[test]), (mapped(points[train]), mapped(points[test])))
        ):
            train_points, test_points = _in_same_unit(train_points, test_points)
            predicted = linear_head(train_points, labels[train], test_points, "classification")
            correct["probe"][index, test] = predicted == labels[test]
            correct["knn"][index, test] = _neighbour_labels(train_points, labels[train], test_points) == labels[test]
    return {name: (Mean(before), Mean(after)) for name, (before, after) in correct.items()}


def _in_same_unit(train: Any, test: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Both sets in the same unit and precision."""
    both = Image(np.concatenate([train, test]))
    return both.points[: len(train)], both.points[len(train) :]


def _neighbour_labels(train: NDArray[Any], labels: NDArray[np.int64], test: NDArray[Any]) -> NDArray[np.int64]:
    from sklearn.neighbors import KNeighborsClassifier

    predictions = (
        KNeighborsClassifier(neighbours_for(labels), metric="cosine", algorithm="brute")
        .fit(train, labels)
        .predict(test)
    )
    return np.asarray(predictions)


def linear_head(train: Any, labels: NDArray[Any], points: Any, kind: str, *, width: int | None = None) -> NDArray[Any]:
    """Predictions (m,) for `points` (m, k) of a linear head fitted on (n, k) `train`.

    Logistic regression with scikit-learn's default L2 penalty (C = 1), or ridge regression (α = 1) for numbers, on vectors
    that are centred and scaled by one common factor to mean squared length k. An unpenalised head could undo every invertible
    transform, and an unscaled penalty would make a change of unit look like an effect.

    Args:
        width: k, if columns of zeros were left out; default: the number of columns.
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

    # Newton's method reaches the optimum to the last digits, so the result is the same in every orthonormal basis
    small = x.shape[1] * (1 if len(classes) == 2 else len(classes)) <= _NEWTON
    solver = "newton-cholesky" if small else "lbfgs"
    return np.asarray(
        LogisticRegression(solver=solver, max_iter=1000, tol=1e-10 if small else 1e-6).fit(x, labels).predict(y)
    )
