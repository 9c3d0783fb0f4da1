"""What records hold of a cloud: every applicable metric, on the points it is right for, with its reason where undefined."""

from __future__ import annotations

import numpy as np
import pytest
from reference_clouds import spread_cloud

from isoviz import metrics
from isoviz.metrics.measuring import DEPENDENT, POINTS_NEEDED, applicable, measure_cloud, measure_weights, notes_of
from isoviz.metrics.record import CloudRecord
from isoviz.metrics.sample import Sample
from isoviz.metrics.streaming import CovarianceAccumulator

X = spread_cloud(60, 5)


def streamed(points, **inputs):
    stream = CovarianceAccumulator(points.shape[1])
    stream.update(points)
    return stream.sample(**inputs)


def test_independent_points_are_measured_by_every_metric_of_rows():
    record = measure_cloud(Sample(X), "head", split="validation")
    assert list(record.readings) == [metric.slug for metric in applicable("rows") if not metric.inputs]
    assert not any(reading.undefined or reading.points for reading in record.readings.values())
    for slug in ("isoscore", "mean_cosine", "rankme", "uniformity", "hubness", "twonn"):
        assert record.number(slug) == pytest.approx(getattr(metrics, slug)(X), rel=1e-9), slug
    assert record.number("isoscore_star") is None and record.reading("isoscore_star") is None
    low, high = record.interval("isoscore_unbiased")
    assert low < record.number("isoscore_unbiased") < high
    assert CloudRecord.model_validate_json(record.model_dump_json()) == record


def test_tokens_give_one_per_row_or_a_reason():
    bare = measure_cloud(streamed(X), "layer_1", "tokens")
    assert bare.readings["isoscore_unbiased"].undefined == DEPENDENT
    needing = [m for m in applicable("tokens") if not (m.from_sums or m.independent or m.inputs)]
    assert {bare.readings[metric.slug].undefined for metric in needing} == {POINTS_NEEDED}
    assert bare.number("isoscore") == pytest.approx(metrics.isoscore(X), rel=1e-9)
    full = measure_cloud(streamed(X), "layer_1", "tokens", independent=Sample(X[:20]), drawn=Sample(X[:30]), most=25)
    assert full.number("isoscore_unbiased") == pytest.approx(metrics.isoscore_unbiased(X[:20]))
    assert (full.points_of("isoscore_unbiased"), full.points_of("twonn"), full.points_of("isoscore")) == (20, 25, 60)
    assert "isoscore_unbiased is taken on one token of each row, 20 of 60 points" in notes_of(full)
    assert "twonn is taken on a sample of 25 of 60 points" in notes_of(full)


def test_a_metric_of_groups_is_measured_where_they_are_given():
    groups = np.arange(60) // 3
    record = measure_cloud(Sample(X, inputs={"groups": groups}), "head")
    assert record.number("lidar") == metrics.lidar(X, groups) and record.reading("prompt_entropy") is None
    assert measure_cloud(Sample(X, inputs={"texts": groups}), "layer_1", "tokens").number(
        "prompt_entropy"
    ) == metrics.prompt_entropy(X, groups)


def test_settings_of_a_metric_are_stored():
    record = measure_cloud(streamed(X, shrinkage_cov=np.eye(5), zeta=0.2), "layers", "tokens")
    assert record.readings["isoscore_star"].settings == {"zeta": 0.2}
    assert record.number("isoscore_star") == pytest.approx(metrics.isoscore_star(X, np.eye(5), 0.2), rel=1e-9)


def test_an_output_matrix():
    record = measure_weights(X[:3])
    assert (record.rows, record.d, record.norm) == (3, 5, pytest.approx(np.linalg.norm(X[:3])))
    assert (record.number("i1"), record.number("i2")) == metrics.partition(X[:3])
