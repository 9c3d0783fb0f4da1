"""Uniformity as a penalty: the measure of the same name, a plain loop, and two clouds whose value is known."""

from __future__ import annotations

import math

import pytest
import torch

from isoviz import metrics
from tests.methods.test_cloud_penalties import value


def test_it_is_the_measure_and_a_plain_loop():
    points = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(value("uniformity", points, lam=1.0)) == pytest.approx(metrics.uniformity(points.numpy()))
    unit = [point / point.norm() for point in points]
    for t in (0.5, 3.0):
        terms = [
            math.exp(-t * float((x - y).norm()) ** 2) for i, x in enumerate(unit) for j, y in enumerate(unit) if i != j
        ]
        expected = math.log(sum(terms) / len(terms))
        assert float(value("uniformity", points, lam=2.0, sharpness=t)) == pytest.approx(2 * expected)
