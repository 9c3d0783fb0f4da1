"""Explore across layers: what the curves hold, and the valley in words."""

from __future__ import annotations

import numpy as np

from dashboard.explore import layer_curves
from isoviz.exploring import layers
from isoviz.statistics.intervals import Interval


def test_the_valley_is_marked_and_its_depth_is_in_words() -> None:
    values = np.array([0.9, 0.4, 0.8])[:, None] + np.random.default_rng(0).normal(size=30) / 50
    means = values.mean(axis=1)
    dip = layers.valley(values)
    assert dip is not None
    curve, mark = layer_curves.entropy_curve([(mean, Interval(mean - 0.1, mean + 0.2)) for mean in means], dip).data
    assert list(curve.x) == [0, 1, 2] and list(curve.y) == list(means) and (mark.x, mark.y) == ((1,), (means[1],))
    np.testing.assert_allclose([curve.error_y.array, curve.error_y.arrayminus], [[0.2] * 3, [0.1] * 3])
    words = layer_curves.valley_words(dip, means)
    assert "layer 1" in words and "0.400 [0.400, 0.400]" in words
    assert "first layer (0.1)" in layer_curves.valley_words(None, np.array([0.1, 0.2]))


def test_each_line_of_neighbours_begins_at_its_layer() -> None:
    rng = np.random.default_rng(0)
    kept = layers.retention([rng.normal(size=(40, 4)) for _ in range(3)])
    assert kept is not None
    before, last, chance = layer_curves.retention_curves(kept).data
    assert list(before.x) == [1, 2] and list(before.y) == [value for value, _ in kept.from_before]
    assert list(last.x) == [0, 1] and list(last.y) == [value for value, _ in kept.to_last]
    assert list(chance.y) == [kept.by_chance] * 2
