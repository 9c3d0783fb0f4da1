"""The frozen head, and the paired bootstrap between two predictions of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.statistics.paired_bootstrap import LEVEL, Difference
from isoviz.tasks import metrics as task_metrics

RESAMPLES: Final = 2_000
_SLOW_RESAMPLES: Final = 500
"""Bootstrap resamples of metrics without a closed form in counts."""


@dataclass(frozen=True)
class FrozenHead:
    """The run's output layer.

    Attributes:
        weight, bias: (labels, h) and (labels,) float64.
        kind: `classification`, or `regression` with one label.
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    kind: str = "classification"

    @property
    def width(self) -> int:
        """h, the number of inputs."""
        return int(self.weight.shape[1])

    def predict(self, points: NDArray[np.float64]) -> NDArray[Any]:
        """(n,) class codes, or numbers, for (n, h) points."""
        return self.decide(points @ self.weight.T + self.bias)

    def decide(self, logits: NDArray[np.float64]) -> NDArray[Any]:
        """(n,) predictions from (n, labels) logits."""
        predictions: NDArray[Any] = logits.argmax(axis=1) if self.kind == "classification" else logits[:, 0]
        return predictions


def primary(name: str, labels: NDArray[Any], predicted: NDArray[Any]) -> float | None:
    """One metric of predictions (n,), codes or numbers; None if undefined."""
    kind = task_metrics.METRICS[name].kinds[0]  # with one vector per row, no metric serves both classes and numbers
    return task_metrics.compute([name], labels, predicted, kind)[name]


def paired_difference(
    metric: str, labels: NDArray[Any], before: NDArray[Any], after: NDArray[Any], kind: str, *, seed: int = 0
) -> Difference:
    """`metric(after) − metric(before)` with its paired percentile bootstrap interval (Efron & Tibshirani 1993, chapter 13).

    Rows are drawn with replacement, each with its label and both predictions. For classes, this is equivalent to drawing the counts
    of each distinct (label, before, after) from one multinomial distribution, which is faster.
    """
    n = len(labels)
    first, second = primary(metric, labels, before), primary(metric, labels, after)
    value = None if first is None or second is None else second - first
    if value is None or n < 2:
        return Difference(value, None, None, n, 0)
    generator = np.random.default_rng(seed)
    rows = np.stack([labels, before, after], axis=1)
    cells, counts = np.unique(rows, axis=0, return_counts=True) if kind == "classification" else (rows, np.ones(n))
    closed = _FROM_COUNTS.get(metric)
    resamples = RESAMPLES if closed and kind == "classification" else _SLOW_RESAMPLES
    resampled = generator.multinomial(n, counts / n, size=resamples)
    if closed and kind == "classification":
        differences = closed(cells[:, 0], cells[:, 2], resampled) - closed(cells[:, 0], cells[:, 1], resampled)
    else:
        differences = np.array([_difference(metric, np.repeat(cells, row, axis=0)) for row in resampled])
    defined = differences[np.isfinite(differences)]
    if len(defined) < resamples / 2:
        return Difference(value, None, None, n, resamples)
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(value, float(low), float(high), n, resamples)


def _difference(metric: str, rows: NDArray[Any]) -> float:
    values = [primary(metric, rows[:, 0], rows[:, column]) for column in (1, 2)]
    return float("nan") if None in values else values[1] - values[0]  # type: ignore[operator]


Counted = Callable[[NDArray[Any], NDArray[Any], NDArray[np.int64]], NDArray[np.float64]]


def _accuracy(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray((counts @ (labels == predicted)) / counts.sum(axis=1))


def _f1(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    hits = counts @ ((labels == 1) & (predicted == 1))
    denominator = counts @ (labels == 1) + counts @ (predicted == 1)
    return np.divide(2.0 * hits, denominator, out=np.zeros(len(counts)), where=denominator > 0)


def _matthews(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    classes: Sequence[Any] = np.unique(np.concatenate([labels, predicted])).tolist()
    true = np.stack([counts @ (labels == k) for k in classes], axis=1).astype(np.float64)
    guessed = np.stack([counts @ (predicted == k) for k in classes], axis=1).astype(np.float64)
    n = counts.sum(axis=1).astype(np.float64)
    covariance = (counts @ (labels == predicted)) * n - (true * guessed).sum(axis=1)
    spread = np.sqrt(n**2 - (true**2).sum(axis=1)) * np.sqrt(n**2 - (guessed**2).sum(axis=1))
    return np.divide(covariance, spread, out=np.zeros(len(counts)), where=spread > 0)


_FROM_COUNTS: Final[dict[str, Counted]] = {"accuracy": _accuracy, "f1": _f1, "matthews": _matthews}
"""Metrics of `isoviz.tasks.metrics` from (resamples, cells) counts of distinct (label, prediction) pairs: (resamples,)."""
