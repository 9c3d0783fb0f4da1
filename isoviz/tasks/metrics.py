"""Task metrics, by scikit-learn. An undefined value is None, never a number made up for the average."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray], float]


def _accuracy(labels: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predicted))


def _matthews(labels: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(labels, predicted))  # 0 when one class is predicted throughout


def _f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predicted, zero_division=0.0))


METRICS: dict[str, Metric] = {"accuracy": _accuracy, "matthews": _matthews, "f1": _f1}


def compute(names: Sequence[str], labels: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
    """The named metrics of predicted class codes (n,) against labels (n,); None where undefined (no rows)."""
    if len(labels) == 0:
        return dict.fromkeys(names)
    values = {name: METRICS[name](labels, predicted) for name in names}
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def majority(names: Sequence[str], train: np.ndarray, validation: np.ndarray) -> dict[str, float | None]:
    """What predicting the training set's most frequent class everywhere scores on validation labels."""
    values, counts = np.unique(train, return_counts=True)
    return compute(names, validation, np.full(len(validation), values[counts.argmax()]))
