"""Nearest points against a loop over all of them; how many points a correlation matrix uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from isoviz import metrics
from isoviz.exploring import points as exploring_points
from isoviz.exploring import results
from isoviz.exploring.points import nearest
from isoviz.exploring.results import array_name


@pytest.mark.parametrize("leave_out", [None, 17])
def test_all_neighbours_in_order(leave_out: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploring_points, "_AT_A_TIME", 16)  # several blocks
    points = np.random.default_rng(0).standard_normal((50, 5)).astype(np.float32)
    points[4] = 0
    to = points[17].astype(float)
    others = [(index, point) for index, point in enumerate(points.tolist()) if index not in (4, leave_out)]
    cosines = [
        (-sum(map(float.__mul__, point, to.tolist())) / math.hypot(*point) / math.hypot(*to), i) for i, point in others
    ]
    expected = sorted(cosines)
    ranked = nearest(points, points[17], k=100, leave_out=leave_out)
    assert ranked.places.tolist() == [place for _, place in expected]
    np.testing.assert_allclose(-ranked.cosines, [value for value, _ in expected], atol=1e-12)
    assert nearest(points, points[17], k=3, leave_out=leave_out).places.tolist() == [place for _, place in expected[:3]]


KEPT = 12


def made(**facts: Any) -> results.ViewResult:
    """A view of two layers and two poolings that stores few points."""
    rng = np.random.default_rng(0)
    clouds = [(layer, pooling) for pooling in ("cls", "tokens") for layer in (0, 1)]
    arrays = {array_name(*cloud, "cloud"): rng.normal(size=(KEPT, 5)).astype(np.float32) for cloud in clouds}
    for pooling in ("cls", "tokens"):
        arrays[array_name(1, pooling, "order")] = np.arange(5, dtype=np.int32)
        arrays[array_name(1, pooling, "correlation")] = np.full((5, 5), 255, dtype=np.uint8)
    entries = [
        {"cloud": f"layer_{layer}", "layer": layer, "pooling": pooling, "n": 900, "d": 5, "readings": {}}
        for layer, pooling in clouds
    ]
    results.STORE.publish("0" * 32, {"depth": 1, "entries": entries, **facts}, arrays)
    view = results.find("0" * 32)
    assert view is not None
    return view


def test_points_of_a_picture_are_those_it_was_computed_from() -> None:
    view = made(token_sample=500)
    assert view.points_in_matrix(1, "cls") == 900  # computed with the view, before points were dropped
    assert view.points_in_matrix(1, "tokens") == 500
    assert view.points_in_matrix(0, "cls") == view.points_in_matrix(0, "tokens") == view.stored_points(0, "cls") == KEPT
    cells, order = view.matrix(0, "cls")
    expected = np.asarray(metrics.abs_correlation(view.points(0, "cls")))[np.ix_(order, order)]
    np.testing.assert_array_equal(cells, np.rint(255 * expected))
    with pytest.raises(KeyError):
        view.stored_points(2, "cls")
