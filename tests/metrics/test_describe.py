"""All headline metrics at once are the single metrics."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from reference_clouds import REFERENCE_CLOUDS, spread_cloud

from isoviz import metrics

KEYS = {
    "n",
    "d",
    "isoscore",
    "isoscore_unbiased",
    "ev",
    "mean_cosine",
    "participation_ratio",
    "effective_rank",
    "twonn",
    "warnings",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFERENCE_CLOUDS)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_it_agrees_with_each_metric(name, kind):
    cloud = REFERENCE_CLOUDS[name]
    summary = metrics.describe(kind(cloud))
    assert set(summary) == KEYS
    assert (summary["n"], summary["d"]) == cloud.shape
    for key in ("isoscore", "isoscore_unbiased", "mean_cosine", "participation_ratio", "effective_rank", "twonn"):
        expected = getattr(metrics, key)(cloud)
        if np.isnan(expected):
            assert summary[key] is None
            assert any(note.startswith(f"{key} is undefined") for note in summary["warnings"])
        else:
            assert summary[key] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert summary["ev"] == pytest.approx(list(metrics.explained_variance(cloud)), abs=1e-14)


def test_the_curve_holds_fifty_values_at_most():
    assert len(metrics.describe(spread_cloud(200, 60), twonn=False)["ev"]) == 50
    assert len(metrics.describe(spread_cloud(9, 60), twonn=False)["ev"]) == 9


@pytest.mark.parametrize("cloud", [np.ones((9, 4)), np.ones((1, 4)), np.zeros((0, 4)), np.ones((5, 1))])
def test_undefined_is_none_with_a_reason_and_without_python_warnings(cloud):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = metrics.describe(cloud)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    for key in ("isoscore", "isoscore_unbiased", "ev", "effective_rank", "twonn"):
        assert summary[key] is None
        assert any(note.startswith(f"{key} is undefined: ") for note in summary["warnings"])


def test_what_was_left_out_is_said():
    cloud = np.concatenate([spread_cloud(20, 30), np.zeros((3, 30))])
    notes = " | ".join(metrics.describe(cloud)["warnings"])
    assert "3 zero vectors" in notes
    assert "2 duplicate points" in notes
    assert "n = 23 points in d = 30" in notes


def test_twonn_can_be_left_out():
    summary = metrics.describe(spread_cloud(50, 4), twonn=False)
    assert summary["twonn"] is None
    assert summary["warnings"] == []


def test_bad_clouds_are_refused():
    with pytest.raises(ValueError, match="shape"):
        metrics.describe(np.ones(4))
    with pytest.raises(ValueError, match="finite"):
        metrics.describe(np.array([[1.0, np.inf], [0.0, 1.0]]))
