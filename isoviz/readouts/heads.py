"""Read-outs of a run: the task's metric with its own output layer, and with a refitted one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.labels import linear_head
from isoviz.statistics.paired_bootstrap import Correlation, Mean, Ranks

if TYPE_CHECKING:
    from isoviz.tasks.protocol import HeadKind


@dataclass(frozen=True)
class FrozenHead:
    """The run's output layer.

    Attributes:
        weight, bias: (labels, h) and (labels,) float64.
        kind: `classification`, or `regression` with one label.
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    kind: HeadKind = "classification"

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
    from isoviz.tasks import metrics as task_metrics

    kind = task_metrics.METRICS[name].kinds[0]  # with one vector per row, no metric serves both classes and numbers
    return task_metrics.compute([name], labels, predicted, kind)[name]


class Score:
    """The task's metric of predictions, as a statistic of the rows.

    Args:
        predicted: (n,) class codes or numbers; None if the head cannot read the vectors, which leaves the metric undefined.
    """

    def __init__(self, metric: str, labels: NDArray[Any], predicted: NDArray[Any] | None) -> None:
        self.metric = metric
        self.labels = labels
        self.predicted = predicted
        self.n = len(labels)
        self.value = None if predicted is None else primary(metric, labels, predicted)

    def resampled(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """(r,) values for (r, n) counts of draws."""
        labels, predicted = self.labels, self.predicted
        if predicted is None:
            return np.full(len(counts), np.nan)
        return _FROM_COUNTS[self.metric](labels, predicted, counts)


@dataclass(frozen=True)
class HeadRows:
    """The labels of a run's rows, and the head that reads their vectors.

    Attributes:
        train_labels, labels: (n,), (m,) class codes, or numbers for regression; of the rows that transforms are fitted on, and of
            those that are measured.
        head: the run's output layer.
        kind, metric: the task's kind, `classification` or `regression`, and its primary metric.
        seed: the run's seed.
    """

    train_labels: NDArray[Any]
    labels: NDArray[Any]
    head: FrozenHead
    kind: HeadKind
    metric: str
    seed: int = 0

    def frozen(self, logits: NDArray[np.float64] | None) -> Score:
        """The run's own head, from its (m, labels) logits without the bias; None if it cannot read the image."""
        return Score(self.metric, self.labels, None if logits is None else self.head.decide(logits + self.head.bias))

    def refitted(self, train: NDArray[Any], points: NDArray[Any], width: int | None = None) -> Score:
        """A head refitted on the (n, k) image of the fitted rows; arguments as for `linear_head`."""
        predicted = linear_head(train, self.train_labels, points, self.kind, width=width)
        return Score(self.metric, self.labels, predicted)


Resampled = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[np.float64]]


def _accuracy(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(_drawn(counts, labels == predicted) / counts.sum(axis=1))


def _f1(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    hits, totals = _of_class(1, labels, predicted, counts)
    return 2 * hits / np.maximum(totals, 1)


def _macro_f1(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    hits, totals = np.stack([_of_class(k, labels, predicted, counts) for k in _classes(labels, predicted)], axis=2)
    return np.asarray((2 * hits / np.maximum(totals, 1)).sum(axis=1) / (totals > 0).sum(axis=1))


def _matthews(labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    classes = _classes(labels, predicted)
    true = np.stack([_drawn(counts, labels == k) for k in classes], axis=1)
    guessed = np.stack([_drawn(counts, predicted == k) for k in classes], axis=1)
    n = counts.sum(axis=1).astype(np.float64)
    covariance = _drawn(counts, labels == predicted) * n - (true * guessed).sum(axis=1)
    spread = np.sqrt(n**2 - (true**2).sum(axis=1)) * np.sqrt(n**2 - (guessed**2).sum(axis=1))
    return np.divide(covariance, spread, out=np.zeros(len(counts)), where=spread > 0)


def _classes(labels: NDArray[Any], predicted: NDArray[Any]) -> list[Any]:
    return list(np.unique(np.concatenate([labels, predicted])))


def _of_class(
    code: int, labels: NDArray[Any], predicted: NDArray[Any], counts: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(r,), (r,): how often a class is right, and how often it is a label or a prediction."""
    hits = _drawn(counts, (labels == code) & (predicted == code))
    return hits, _drawn(counts, labels == code) + _drawn(counts, predicted == code)


def _drawn(counts: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(r,): how many of these rows each resample holds."""
    return np.asarray(counts @ rows.astype(counts.dtype), dtype=np.float64)


_FROM_COUNTS: Final[dict[str, Resampled]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "macro-f1": _macro_f1,
    "matthews": _matthews,
    "pearson": lambda labels, predicted, counts: Correlation(labels, predicted).resampled(counts),
    "spearman": lambda labels, predicted, counts: Correlation(Ranks(labels), predicted).resampled(counts),
    "mse": lambda labels, predicted, counts: Mean(np.square(labels - predicted)).resampled(counts),
}
"""The metrics of classes and of numbers in closed form, from (r, n) counts of draws: (r,)."""
