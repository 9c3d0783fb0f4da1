"""Scores that the rows cannot give, dead and rogue dimensions, rows that cannot be told apart: against deletions and linear algebra."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from isoviz import metrics
from isoviz.metrics.measuring import measure_cloud, notes_of
from isoviz.metrics.sample import Sample

RNG = np.random.default_rng(5)


def without_each(x: np.ndarray) -> tuple[float, float, float]:
    """The unbiased score of x, and the ends of its jackknife interval, from n scores of n − 1 rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratios = np.array([metrics.isoscore_unbiased(np.delete(x, row, axis=0)) for row in range(len(x))])
    error = math.sqrt((len(x) - 1) / len(x) * ((ratios - ratios.mean()) ** 2).sum())
    score = float(metrics.isoscore_unbiased(x))
    reach = stats.t.ppf(0.975, len(x) - 1) * error
    return score, score - reach, score + reach


def test_a_score_whose_interval_is_wider_than_its_range_is_not_given() -> None:
    outcomes = set()
    for n in (6, 7, 9, 14, 30):
        for _ in range(4):
            x = RNG.standard_t(3, size=(n, 8)) * np.geomspace(3, 0.5, 8)
            score, low, high = without_each(x)
            for asked in (True, False):  # the decision does not depend on whether an interval is shown
                reading = measure_cloud(Sample(x), "", interval=asked).readings["isoscore_unbiased"]
                if high - low > 1:
                    assert reading.value is None and f"cannot be estimated from {n} rows" in reading.undefined
                else:
                    assert reading.value == pytest.approx(score)
                    assert reading.interval == (pytest.approx((low, high)) if asked else None)
            outcomes.add(high - low > 1)
    assert outcomes == {True, False}


@pytest.mark.parametrize("number_type", [np.float64, np.float32])
def test_rows_whitened_on_themselves_have_no_unbiased_score(number_type: type) -> None:
    x = RNG.normal(size=(200, 12)) @ RNG.normal(size=(12, 12))
    centred = x - x.mean(0)
    left, _, right = np.linalg.svd(centred, full_matrices=False)
    white = (left @ right * np.sqrt(199)).astype(number_type)
    with pytest.warns(metrics.UndefinedWarning, match="whitened on themselves"):
        assert math.isnan(metrics.isoscore_unbiased(white))
    assert metrics.isoscore(white) == pytest.approx(1)
    flat = np.column_stack([white[:, :9], np.zeros((200, 3))])  # of lower rank
    assert "whitened on themselves" in measure_cloud(Sample(flat), "").readings["isoscore_unbiased"].undefined
    # another draw under the same map, and points on a line, are independent draws
    other = RNG.normal(size=(200, 12))
    line = np.outer(RNG.normal(size=50), np.ones(4))
    assert metrics.isoscore_unbiased(other) > 0.5 and metrics.isoscore_unbiased(line) == pytest.approx(0, abs=1e-9)


def test_means_at_rounding_are_not_rogue() -> None:
    x = RNG.normal(size=(300, 48)) * RNG.uniform(0.5, 2, 48)
    for points in (x - x.mean(0), (x - x.mean(0)).astype(np.float32), 1e-9 * (x - x.mean(0))):
        assert list(metrics.outlier_dimensions(points)) == []
    shifted = x - x.mean(0)
    shifted[:, 7] += 3
    assert list(metrics.outlier_dimensions(shifted)) == [7]


def test_dead_dimensions_are_named_before_and_after_whitening() -> None:
    x = RNG.normal(size=(300, 24)) @ RNG.normal(size=(24, 24))
    x[:, [3, 11]], x[:, 17] = [0.0, 5.0], 1e-33 * RNG.normal(size=300)
    record = measure_cloud(Sample(x), "")
    assert record.dimensions is not None and record.dimensions.dead == (3, 11, 17)
    from isoviz import posthoc

    for transform in (posthoc.zca(), posthoc.zca(ridge=0.1), posthoc.batch_norm()):
        image = Sample(transform.fit_transform(x))
        assert measure_cloud(image, "").dimensions.dead == (3, 11, 17)  # type: ignore[union-attr]
    assert metrics.isoscore(posthoc.zca().fit_transform(x)) == pytest.approx((21 - 1) / 23)
    assert measure_cloud(Sample(RNG.normal(size=(50, 4))), "").dimensions.dead == ()  # type: ignore[union-attr]
    assert measure_cloud(Sample(np.ones((50, 4))), "").dimensions.dead == ()  # type: ignore[union-attr]


def test_rows_that_cannot_be_told_apart_are_said_so() -> None:
    v = RNG.normal(size=16)
    unit = [row / np.linalg.norm(row) for row in v + 3e-3 * RNG.normal(size=(80, 16))]
    cosine = np.mean([a @ b for i, a in enumerate(unit) for b in unit[:i]])
    assert 1 - cosine < 5e-5
    said = f"the rows cannot be told apart: the mean cosine of two of them is {cosine:.{math.ceil(-math.log10(1 - cosine))}f}"
    assert said in notes_of(measure_cloud(Sample(np.array(unit)), ""))
    lengths = np.outer(RNG.uniform(1, 1.1, 80), 40 * v) + 1e-6 * RNG.normal(size=(80, 16))
    assert any("cannot be told apart" in note for note in notes_of(measure_cloud(Sample(lengths), "")))
    apart = measure_cloud(Sample(v + 0.1 * RNG.normal(size=(80, 16))), "")
    assert not any("told apart" in note for note in notes_of(apart))
