"""The closed forms of resampled metrics against scikit-learn on resampled rows, and the interval against scipy's bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from isoviz.readouts import heads
from isoviz.readouts.heads import Score, primary
from isoviz.readouts.labels import linear_head
from isoviz.statistics.paired_bootstrap import Difference, difference, draws
from isoviz.tasks import metrics as task_metrics


def predictions(n: int = 240, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=n)
    before = np.where(random.random(n) < 0.7, labels, random.integers(classes, size=n))
    after = np.where(random.random(n) < 0.85, labels, random.integers(classes, size=n))
    return labels, before, after


def change(metric: str, labels: np.ndarray, before: np.ndarray, after: np.ndarray) -> Difference:
    return difference(Score(metric, labels, before), Score(metric, labels, after))


def test_every_metric_of_a_head_has_a_closed_form():
    kinds = {"classification", "regression"}
    assert set(heads._FROM_COUNTS) == {name for name, one in task_metrics.METRICS.items() if kinds & set(one.kinds)}


@pytest.mark.parametrize(
    "metric, classes", [("accuracy", 4), ("matthews", 2), ("matthews", 4), ("f1", 2), ("macro-f1", 3)]
)
def test_resampled_metrics_are_the_metrics_of_resampled_rows(metric, classes):
    labels, predicted, _ = predictions(classes=classes)
    drawn = np.random.default_rng(1).multinomial(240, np.full(240, 1 / 240), size=6)
    drawn = np.vstack([drawn, 240 * np.eye(240, dtype=np.int64)[:1]]).astype(np.float32)  # one label throughout
    for value, row in zip(Score(metric, labels, predicted).resampled(drawn), drawn.astype(np.int64), strict=True):
        expected = task_metrics.compute([metric], np.repeat(labels, row), np.repeat(predicted, row))[metric]
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", ["accuracy", "matthews"])
def test_the_interval_is_scipys_paired_percentile_bootstrap(metric):
    labels, before, after = predictions()
    resampled = change(metric, labels, before, after)
    statistic = {"accuracy": lambda y, p: np.mean(y == p), "matthews": lambda y, p: np.corrcoef(y, p)[0, 1]}[metric]

    def difference(y, a, b):
        return statistic(y, b) - statistic(y, a)

    expected = bootstrap(
        (labels, before, after), difference, paired=True, vectorized=False, n_resamples=1500, method="percentile",
        rng=np.random.default_rng(3),
    )  # fmt: skip
    spread = float(expected.standard_error)
    assert resampled.value == pytest.approx(difference(labels, before, after))
    assert resampled.low == pytest.approx(expected.confidence_interval.low, abs=0.25 * spread)
    assert resampled.high == pytest.approx(expected.confidence_interval.high, abs=0.25 * spread)
    assert resampled.n == 240 and resampled.excludes_zero == (expected.confidence_interval.low > 0)


def test_numbers_are_resampled_row_by_row():
    random = np.random.default_rng(0)
    labels = random.normal(size=80)
    before, after = labels + 2 * random.normal(size=80), labels + 0.3 * random.normal(size=80)
    for metric in ("pearson", "spearman", "mse"):
        gain = change(metric, labels, before, after)
        assert gain.excludes_zero and gain.low < gain.value < gain.high
        drawn = draws(80)[:5]
        expected = [primary(metric, np.repeat(labels, row), np.repeat(after, row)) for row in drawn.astype(np.int64)]
        assert Score(metric, labels, after).resampled(drawn) == pytest.approx(expected, rel=1e-5)
    assert change("pearson", labels, np.zeros(80), after).value is None  # undefined stays undefined
    assert change("pearson", labels, None, after).value is None  # a head that cannot read the vectors


def test_equal_predictions_differ_by_nothing():
    labels, before, _ = predictions()
    none = change("matthews", labels, before, before)
    assert (none.value, none.low, none.high, none.excludes_zero) == (0.0, 0.0, 0.0, False)


def test_a_refitted_head_sees_neither_unit_nor_origin_nor_axes():
    random = np.random.default_rng(0)
    train = random.normal(size=(200, 6)) * [4, 2, 1, 1, 0.5, 0.1]
    points = random.normal(size=(90, 6)) * [4, 2, 1, 1, 0.5, 0.1]
    labels = (train @ [1, -1, 0, 2, 0, 0] + random.normal(size=200) > 0).astype(int)
    turn = np.linalg.qr(random.normal(size=(6, 6)))[0]
    first = linear_head(train, labels, points, "classification")
    np.testing.assert_array_equal(
        first, linear_head(1e3 * train @ turn + 7, labels, 1e3 * points @ turn + 7, "classification")
    )
    padded = [np.hstack([part, np.zeros((len(part), 2))]) for part in (train, points)]
    np.testing.assert_array_equal(linear_head(*[padded[0], labels, padded[1]], "classification"),
                                  linear_head(train, labels, points, "classification", width=8))  # fmt: skip
    assert set(linear_head(train, np.ones(200, dtype=int), points, "classification")) == {1}
    numbers = train @ [1.0, -1, 0, 2, 0, 0]
    assert np.corrcoef(linear_head(train, numbers, points, "regression"), points @ [1, -1, 0, 2, 0, 0])[0, 1] > 0.99
    many = (10 * random.random(200)).astype(int)
    assert len(linear_head(np.tile(train, (1, 40)), many, np.tile(points, (1, 40)), "classification")) == 90
