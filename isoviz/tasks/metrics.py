"""Task metrics, by numpy, scipy, sacrebleu and rouge-score. An undefined value is None, never a number made up.

Scales: accuracy, F1, exact match and ROUGE run from 0 to 1, Matthews and the correlations from −1 to 1. BLEU and chrF stay
sacrebleu's 0 to 100, because a signature stands for that number; `METRICS[name].highest` says so, for tables to label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from isoviz.tasks import text_metrics


@dataclass(frozen=True)
class Metric:
    """One task metric.

    Attributes:
        title: for tables.
        kinds: the head kinds whose predictions it compares.
        highest: the value of perfect predictions; 100 for BLEU and chrF, 1 for the others, 0 for errors.
        higher_is_better: False for errors.
    """

    title: str
    kinds: tuple[str, ...]
    highest: float = 1.0
    higher_is_better: bool = True


METRICS = MappingProxyType(
    {
        "accuracy": Metric("Accuracy", ("classification",)),
        "matthews": Metric("Matthews correlation", ("classification",)),
        "f1": Metric("F1", ("classification", "span")),
        "macro-f1": Metric("Macro F1", ("classification",)),
        "pearson": Metric("Pearson correlation", ("regression", "embedding")),
        "spearman": Metric("Spearman correlation", ("regression", "embedding")),
        "mse": Metric("Mean squared error", ("regression",), 0.0, higher_is_better=False),
        "ndcg": Metric("nDCG@10", ("embedding",)),
        "mrr": Metric("MRR@10", ("embedding",)),
        "recall1": Metric("Recall@1", ("embedding",)),
        "recall10": Metric("Recall@10", ("embedding",)),
        "exact_match": Metric("Exact match", ("span",)),
        "bleu": Metric("BLEU", ("seq2seq",), 100.0),
        "chrf": Metric("chrF", ("seq2seq",), 100.0),
        "rouge1": Metric("ROUGE-1", ("seq2seq",)),
        "rouge2": Metric("ROUGE-2", ("seq2seq",)),
        "rougeL": Metric("ROUGE-L", ("seq2seq",)),
        "rougeLsum": Metric("ROUGE-Lsum", ("seq2seq",)),
    }
)
"""All task metrics by name. `f1` is the positive class's (code 1) in classification, the mean token F1 of answers in spans."""


def compute(
    names: Sequence[str], references: Any, predictions: Any, kind: str = "classification"
) -> dict[str, float | None]:
    """The named metrics of n predictions against n references.

    Args:
        names: from `METRICS`, of this kind.
        references, predictions: class codes (n,) int; numbers (n,) float; for spans a list of all right answers (list of str)
            and one str per question; for seq2seq one str each.

    Returns:
        Name → value; None where undefined: no rows, a correlation with constant predictions or labels, a number that is
        not finite.

    Raises:
        ValueError: references and predictions of different length, or a metric of another kind.
    """
    if len(references) != len(predictions):
        raise ValueError(f"{len(references)} references but {len(predictions)} predictions")
    for name in names:
        if name not in METRICS or kind not in METRICS[name].kinds:
            allowed = ", ".join(metric_name for metric_name, metric in METRICS.items() if kind in metric.kinds)
            raise ValueError(f"'{name}' is not a metric of {kind} tasks (allowed: {allowed})")
    if len(references) == 0:
        return dict.fromkeys(names)
    if kind in ("span", "seq2seq"):
        texts = text_metrics.spans if kind == "span" else text_metrics.generated
        return texts(names, list(references), list(predictions))
    table = _CLASSES if kind == "classification" else _NUMBERS
    labels, predicted = np.asarray(references), np.asarray(predictions)
    values = {name: table[name](labels, predicted) for name in names}
    return {name: value if value is not None and np.isfinite(value) else None for name, value in values.items()}


def signature(names: Iterable[str]) -> dict[str, str]:
    """Metric → what exactly was computed, for the provenance of those that depend on settings (BLEU, chrF, ROUGE)."""
    return text_metrics.signatures(names)


def confusion_counts(labels: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """(classes, classes) int64: how often each code (row) was predicted as each code (column). Importing scikit-learn takes a second."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def _accuracy(labels: np.ndarray, predicted: np.ndarray) -> float:
    return float((labels == predicted).mean())


def _matthews(labels: np.ndarray, predicted: np.ndarray) -> float:
    """The correlation of both sides' indicators, for any number of classes (Gorodkin 2004); 0 when either side is constant."""
    counts = _counts(labels, predicted)
    rows, columns, n = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    spread = (n**2 - rows @ rows) * (n**2 - columns @ columns)
    return float((n * counts.trace() - rows @ columns) / np.sqrt(spread)) if spread else 0.0


def _f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    """Of the class with code 1, whatever else there is; 0 where it is neither right nor predicted."""
    return float(_f1_of_each(confusion_counts(labels == 1, predicted == 1, 2))[1])


def _macro_f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    """The mean over all classes that are right or predicted somewhere."""
    return float(_f1_of_each(_counts(labels, predicted)).mean())


def _f1_of_each(counts: np.ndarray) -> np.ndarray:
    return 2 * counts.diagonal() / np.maximum(counts.sum(axis=0) + counts.sum(axis=1), 1)


def _counts(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """`confusion_counts` of the codes that occur."""
    codes, places = np.unique(np.concatenate([labels, predicted]), return_inverse=True)
    return confusion_counts(places[: len(labels)], places[len(labels) :], len(codes)).astype(np.float64)


def _correlation(name: str) -> Callable[[np.ndarray, np.ndarray], float | None]:
    def correlate(labels: np.ndarray, predicted: np.ndarray) -> float | None:
        import scipy.stats

        stacked = np.stack([labels, predicted]).astype(np.float64)
        if not np.isfinite(stacked).all() or (np.ptp(stacked, axis=1) == 0).any():
            return None  # a constant has no correlation; scipy would warn and give nan
        return float(getattr(scipy.stats, name)(*stacked).statistic)

    return correlate


_CLASSES: dict[str, Callable[[np.ndarray, np.ndarray], float | None]] = {
    "accuracy": _accuracy,
    "matthews": _matthews,
    "f1": _f1,
    "macro-f1": _macro_f1,
}
_NUMBERS: dict[str, Callable[[np.ndarray, np.ndarray], float | None]] = {
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
    "mse": lambda labels, predicted: float(np.square(labels.astype(np.float64) - predicted).mean()),
}
