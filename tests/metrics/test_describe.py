"""`describe` gives the same values as the single metrics."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from reference_clouds import REFERENCE_CLOUDS, spread_cloud

from isoviz import metrics
from isoviz.metrics.cloud import draw
from isoviz.metrics.gaussian import p_value

KEYS = {
    "n",
    "d",
    "n_per_d",
    "isoscore",
    "isoscore_unbiased",
    "isoscore_unbiased_interval",
    "ev",
    "mean_cosine",
    "participation_ratio",
    "effective_rank",
    "twonn",
    "sigma",
    "outlier_dimensions",
    "mean_norm",
    "warnings",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFERENCE_CLOUDS)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_it_agrees_with_each_metric(name, kind):
    cloud = REFERENCE_CLOUDS[name]
    summary = metrics.describe(kind(cloud))
    assert set(summary) >= KEYS
    assert (summary["n"], summary["d"]) == cloud.shape
    for key in ("isoscore", "isoscore_unbiased", "mean_cosine", "participation_ratio", "effective_rank", "twonn"):
        expected = getattr(metrics, key)(cloud)
        if np.isnan(expected):
            assert summary[key] is None
            assert any(note.startswith(f"{key} is undefined") for note in summary["warnings"])
        else:
            assert summary[key] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert summary["ev"] == pytest.approx(list(metrics.explained_variance(cloud)), abs=1e-14)
    interval = metrics.isoscore_interval(cloud)
    if interval.problem:
        assert summary["isoscore_unbiased_interval"] is None
        assert f"isoscore_unbiased_interval is undefined: {interval.problem}" in summary["warnings"]
    else:
        assert summary["isoscore_unbiased_interval"] == pytest.approx([interval.low, interval.high], rel=1e-12)
    std = metrics.dimension_std(cloud)
    expected = {"min": min(std), "median": np.median(std), "max": max(std)}
    assert summary["sigma"] == pytest.approx(expected, rel=1e-12)
    assert summary["outlier_dimensions"] == list(metrics.outlier_dimensions(cloud))
    assert summary["mean_norm"] == pytest.approx(np.linalg.norm(cloud.mean(axis=0)), rel=1e-12, abs=1e-15)
    assert summary["n_per_d"] == len(cloud) / cloud.shape[1]


@pytest.mark.parametrize("n, warned", [(19, True), (20, False)])
def test_too_few_points_for_the_dimensions_are_reported(n, warned):
    summary = metrics.describe(spread_cloud(n, 4), twonn=False)
    assert any("below 5: isoscore" in note and f"n = {n} points" in note for note in summary["warnings"]) == warned


def test_a_test_statistic_has_its_p_value_and_a_part_of_the_points_is_named():
    cloud = spread_cloud(2_100, 3)
    summary = metrics.describe(cloud)
    part = cloud[draw(2_100, summary["epps_pulley_points"], 0)]
    assert summary["epps_pulley_p"] == p_value(metrics.epps_pulley(part), 2_000, 3)
    assert any(note.startswith("epps_pulley is taken on a sample of 2000") for note in summary["warnings"])


@pytest.mark.parametrize("cloud", [np.ones((9, 4)), np.ones((1, 4)), np.zeros((0, 4)), np.ones((5, 1))])
def test_undefined_is_none_with_a_reason_and_without_python_warnings(cloud):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = metrics.describe(cloud)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    for key in ("isoscore", "isoscore_unbiased", "isoscore_unbiased_interval", "ev", "effective_rank", "twonn"):
        assert summary[key] is None
        assert any(note.startswith(f"{key} is undefined: ") for note in summary["warnings"])
    if len(cloud) == 0:
        assert (summary["sigma"], summary["mean_norm"], summary["outlier_dimensions"]) == (None, None, [])


def test_omissions_are_reported():
    cloud = np.concatenate([spread_cloud(20, 30), np.zeros((3, 30))])
    notes = " | ".join(metrics.describe(cloud)["warnings"])
    assert "3 zero vectors" in notes
    assert "twonn leaves out 2 copies" in notes
    assert "n = 23 points in d = 30" in notes
