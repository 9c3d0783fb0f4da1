"""How well vectors separate labels: nearest neighbours, a linear probe."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.sample import Sample
from isoviz.readouts.image import ROUNDING, Image, among_largest
from isoviz.statistics.paired_bootstrap import Mean, Statistic

NEIGHBOURS: Final = 10
FOLDS: Final = 5
_PENALTIES: Final = np.logspace(-4, 2, 7)
"""Values of C among which inner cross-validation chooses."""
_TUNED: Final = 1_500
"""Most rows from which C is chosen; its best value hardly depends on their number, unlike the time."""
_MOST_TOGETHER: Final = 1_000
"""Most coefficients of a linear head that is fitted by Newton's method."""

Result = TypeVar("Result")


def neighbours(image: Image, labels: NDArray[np.int64]) -> Statistic:
    """Share of the rows of `image.sample` that get their own label from their neighbours, by the cosines of all pairs.

    Each row gets the most common label of its nearest other rows (`neighbours_for` says how many), where rows tied at the last place
    share its vote; in a tie, the label of the more similar rows. If rounding would decide between labels, each counts by chance.
    Undefined if the sample has only one label.
    """
    sample_labels = labels[image.sample]
    classes, codes = np.unique(sample_labels, return_inverse=True)
    if len(classes) < 2:
        return Mean(np.full(len(sample_labels), np.nan))
    member = np.eye(len(classes), dtype=np.float32)[codes]
    near = image.nearest(neighbours_for(codes, itself=True))
    votes, support = near @ member, near.multiply(image.cosines) @ member
    scores = votes + 1e-3 * support / (1 + np.abs(support).max(axis=1, keepdims=True))
    chances = among_largest(scores / 1e-3, 1)  # rounding of the cosines changes the scores by a thousandth of it
    return Mean(chances[np.arange(len(codes)), codes])


def neighbours_for(codes: NDArray[np.int64], *, itself: bool = False) -> int:
    """k of k-NN: 10, or the median number of rows per label if smaller, so that rows of small classes find enough neighbours.

    Args:
        itself: whether the searched rows include the row itself, which does not count.
    """
    sizes = np.unique(codes, return_counts=True)[1]
    return min(NEIGHBOURS, max(1, int(np.median(sizes)) - itself), len(codes) - itself)


def probe(image: Image, labels: NDArray[np.int64]) -> Statistic:
    """Share of rows that a linear head fitted on the other folds classifies correctly."""
    return finished(probe_stages(image, labels))


def probe_stages(image: Image, labels: NDArray[np.int64]) -> Generator[None, None, Statistic]:
    """`probe` as a generator that yields several times a second, so that the caller can stop it."""
    correct = np.zeros(len(labels), dtype=bool)
    for train, test in folds(labels):
        found = yield from _head(image.points[train], labels[train], image.points[test], "classification")
        correct[test] = found == labels[test]
    return Mean(correct)


def finished(stages: Generator[None, None, Result]) -> Result:
    """What a generator returns in the end."""
    while True:
        try:
            next(stages)
        except StopIteration as end:
            result: Result = end.value
            return result


def folds(labels: NDArray[np.int64], most: int = FOLDS) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Stratified folds (seed 0), five by default; fewer only if no label has as many rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    commonest = int(np.unique(labels, return_counts=True)[1].max())
    kind = StratifiedKFold if commonest >= 2 else KFold
    count = min(most, commonest if commonest >= 2 else len(labels))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(kind(count, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels))


def crossed_stages(
    points: NDArray[Any], labels: NDArray[np.int64], transform: Callable[[NDArray[Any]], Callable[[Any], Any]]
) -> Generator[None, None, dict[str, tuple[Statistic, Statistic]]]:
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
            both, count = Image(np.concatenate([train_points, test_points])), len(train)
            found = yield from _head(both.points[:count], labels[train], both.points[count:], "classification")
            correct["probe"][index, test] = found == labels[test]
            found = _neighbour_labels(both.unit[:count], labels[train], both.unit[count:])
            correct["knn"][index, test] = found == labels[test]
    return {name: (Mean(before), Mean(after)) for name, (before, after) in correct.items()}


def _neighbour_labels(train: NDArray[Any], labels: NDArray[np.int64], test: NDArray[Any]) -> NDArray[np.int64]:
    """(m,) the most common label of the nearest of n vectors of length 1, the lowest in a tie."""
    classes, codes = np.unique(labels, return_inverse=True)
    votes = among_largest(test @ train.T, neighbours_for(labels)) @ np.eye(len(classes))[codes]
    return np.asarray(classes[(votes >= votes.max(axis=1, keepdims=True) - ROUNDING).argmax(axis=1)])


def linear_head(train: Any, labels: NDArray[Any], points: Any, kind: str, *, width: int | None = None) -> NDArray[Any]:
    """Predictions (m,) for `points` (m, k) of a linear head fitted on (n, k) `train`.

    Logistic regression with an L2 penalty, or ridge regression (α = 1) for numbers, on vectors that are centred and scaled by
    one common factor to mean squared length k. An unpenalised head could undo every invertible transform, and an unscaled
    penalty would make a change of unit look like an effect. C has the highest accuracy in threefold cross-validation within
    the fitted rows; in a tie the smallest. From rows that are all equal, up to the resolution of their number type, it predicts the
    most common label, or the mean.

    Args:
        width: k, if columns of zeros were left out; default: the number of columns.
    """
    return finished(_head(train, labels, points, kind, width))


def _head(
    train: Any, labels: NDArray[Any], points: Any, kind: str, width: int | None = None
) -> Generator[None, None, NDArray[Any]]:
    from sklearn.linear_model import LogisticRegression, Ridge

    x, y = np.asarray(train, dtype=np.float64), np.asarray(points, dtype=np.float64)
    mean = x.mean(axis=0)
    x, y = x - mean, y - mean
    classes, counts = np.unique(labels, return_counts=True)
    if Sample(train).collapsed or len(classes) == 1:
        return np.full(len(y), classes[counts.argmax()] if kind == "classification" else np.mean(labels))
    unit = float(np.sqrt(np.einsum("ij,ij->", x, x) / (len(x) * (width or x.shape[1]))))
    x, y = x / unit, y / unit
    if kind == "regression":
        return np.asarray(Ridge(alpha=1.0, solver="cholesky").fit(x, labels).predict(y))
    directions = _principal_directions(x)
    x, y = x @ directions, y @ directions
    # Newton's method needs few steps, of which each solves for all coefficients together
    solver = "newton-cholesky" if x.shape[1] * len(classes) <= _MOST_TOGETHER else "lbfgs"
    some = np.random.default_rng(0).permutation(len(x))[:_TUNED]
    accuracy = np.zeros(len(_PENALTIES))
    for fitted, judged in folds(labels[some], 3) if len(np.unique(labels[some])) > 1 else ():
        if len(np.unique(labels[some][fitted])) == 1:
            continue
        model = LogisticRegression(solver=solver, tol=1e-2, max_iter=1_000, warm_start=True)
        for place, C in enumerate(_PENALTIES):
            model.set_params(C=C).fit(x[some][fitted], labels[some][fitted])
            accuracy[place] += model.score(x[some][judged], labels[some][judged])
            yield
    best = LogisticRegression(C=_PENALTIES[accuracy.argmax()], solver=solver, tol=1e-5, max_iter=10_000)
    return np.asarray(best.fit(x, labels).predict(y))


def _principal_directions(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d, r) orthonormal directions that span the rows (n, d): a penalised head lies in them, and with n < d they are fewer than d."""
    n, d = x.shape
    values, vectors = np.linalg.eigh(x @ x.T if n < d else x.T @ x)
    kept = values > max(n, d) * np.finfo(np.float64).eps * values[-1]
    return x.T @ (vectors[:, kept] / np.sqrt(values[kept])) if n < d else vectors[:, kept]
