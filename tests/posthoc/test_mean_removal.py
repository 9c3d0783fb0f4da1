"""Mean removal against a loop, and where its direction or a point's own runs out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isoviz import metrics
from isoviz.posthoc import chain, mean_removal, zca
from tests.posthoc.clouds import cloud


def looped(train, points):
    d = train.shape[1]
    mean = [sum(row[j] for row in train) / len(train) for j in range(d)]
    length = math.sqrt(sum(value * value for value in mean))
    unit = [value / length for value in mean]
    image = []
    for x in points:
        along = sum(x[j] * unit[j] for j in range(d))
        rest = [x[j] - along * unit[j] for j in range(d)]
        stretch = math.sqrt(sum(v * v for v in x)) / math.sqrt(sum(v * v for v in rest))
        image.append([v * stretch for v in rest])
    return np.array(image)


def test_against_a_loop():
    train, dev = cloud(), cloud(9, seed=1)
    transform = mean_removal().fit(train)
    image = transform.transform(dev)
    np.testing.assert_allclose(image, looped(train, dev), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(image, axis=1), np.linalg.norm(dev, axis=1), rtol=1e-12)
    np.testing.assert_allclose(image @ train.mean(axis=0), 0, atol=1e-10)
    assert transform.removed == 1 and transform.affine() is None


def test_a_cone_opens():
    cone = np.random.default_rng(0).normal(size=(400, 12)) + 10 * np.eye(12)[3]
    image = mean_removal().fit_transform(cone)
    assert metrics.mean_cosine(cone) > 0.85 and abs(metrics.mean_cosine(image)) < 0.02
    assert metrics.explained_variance(image)[10] == pytest.approx(1)
    assert metrics.isoscore(image) < (12 - 2) / (12 - 1) + 1e-9


def test_points_on_the_line_of_the_mean_map_to_zero():
    train = cloud()
    mean = train.mean(axis=0)
    points = np.stack([mean, -3 * mean, mean + 1e-3 * np.eye(8)[0], np.zeros(8)])
    image = mean_removal().fit(train).transform(points)
    np.testing.assert_array_equal(image[[0, 1, 3]], 0)
    assert np.linalg.norm(image[2]) == pytest.approx(np.linalg.norm(points[2]))
    single = mean_removal().fit(train.astype(np.float32)).transform(mean.astype(np.float32)[None])
    assert np.linalg.norm(single) in (
        0,
        pytest.approx(np.linalg.norm(mean), rel=1e-6),
    )  # rounding may leave a direction


def test_without_a_mean_nothing_is_removed():
    for train in (zca().fit_transform(cloud()), np.array([[1.0, 2.0], [-1.0, -2.0]])):
        transform = mean_removal().fit(train)
        assert transform.removed == 0
        np.testing.assert_array_equal(transform.transform(train), train)
    again = chain([mean_removal(), mean_removal()]).fit(cloud())
    assert [step.removed for step in again.steps] == [1, 1]  # the image's own mean points elsewhere
