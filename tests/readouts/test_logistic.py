"""Logistic regression against scikit-learn's, with fewer rows than dimensions and with more."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isoviz.readouts import labels, logistic
from isoviz.readouts.image import Image


def labelled(n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    codes = np.arange(n) % classes
    centres = 0.3 * random.standard_normal((classes, d))
    points = random.standard_normal((n, d)) * np.geomspace(3, 0.3, d) + centres[codes]
    points -= points.mean(axis=0)
    return points / np.sqrt(np.mean(points**2)), codes


@pytest.mark.parametrize(("n", "d", "classes"), [(60, 200, 5), (60, 200, 2), (300, 10, 3), (300, 10, 2)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_it_finds_the_optimum_of_scikit_learn(n: int, d: int, classes: int, C: float) -> None:
    points, codes = labelled(n, d, classes)
    directions = logistic.principal_directions(points)
    assert directions.shape[1] == min(n - 1, d)
    weights = labels.finished(logistic.fitted(points @ directions, codes, C, tolerance=1e-10))
    expected = LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(points, codes)
    logits = points @ directions @ weights[:-1] + weights[-1]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, expected.predict_proba(points), atol=2e-6)
    found = logistic.predicted(weights, points @ directions, codes)
    np.testing.assert_array_equal(found, expected.predict(points))


def test_many_dimensions_and_classes_take_little_time_in_short_stages() -> None:
    points, codes = labelled(156, 1024, 12)
    image, longest, began = Image(points), 0.0, time.process_time()
    stages, last = labels.probe_stages(image, codes), began
    for _ in stages:
        now = time.process_time()
        longest, last = max(longest, now - last), now
    assert time.process_time() - began < 4 and longest < 2
