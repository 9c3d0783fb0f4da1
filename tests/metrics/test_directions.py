"""Uniformity and alignment against loops over pairs, the closed form of the sphere and the authors' function."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud
from scipy.special import ive, loggamma

from isoviz import metrics
from isoviz.metrics import UndefinedWarning, alignment, directions, uniformity


def by_loops_sphere(x):
    unit = [row / np.linalg.norm(row) for row in x]
    return np.log(np.mean([np.exp(-2 * np.sum((a - b) ** 2)) for a, b in combinations(unit, 2)]))


@pytest.mark.parametrize("n, d", [(2, 3), (31, 5), (12, 40)])
@pytest.mark.parametrize("block", [1_000_000, 50])
def test_against_loops(n, d, block, monkeypatch):
    monkeypatch.setattr(directions, "_BLOCK", block)
    x = spread_cloud(n, d)
    assert isinstance(uniformity(x), float) and uniformity(x) == pytest.approx(by_loops_sphere(x), abs=1e-12)
    assert uniformity(torch.from_numpy(x)).item() == pytest.approx(by_loops_sphere(x), abs=1e-12)
    assert uniformity(x * 1e-200) == pytest.approx(by_loops_sphere(x), abs=1e-12)


@pytest.mark.parametrize("d", [2, 3, 50, 768])
def test_the_value_of_the_whole_sphere(d):
    """E exp(4x·y) is Γ(d/2) (4/2)^(1 − d/2) I_(d/2 − 1)(4)."""
    order = d / 2 - 1
    if d < 100:  # the Bessel function of a large order underflows
        expected = loggamma(d / 2) - order * np.log(2) + np.log(ive(order, 4.0)) + 4.0 - 4.0
        assert metrics.get("uniformity").at_isotropy.value(100, d) == pytest.approx(expected, abs=1e-10)
    x = np.random.default_rng(0).normal(size=(1500, d))
    assert uniformity(x) == pytest.approx(metrics.get("uniformity").at_isotropy.value(1500, d), abs=0.01)


def by_loops_positives(x, y):
    total = 0.0
    for one, other in zip(x, y, strict=True):
        difference = one / np.sqrt(sum(one * one)) - other / np.sqrt(sum(other * other))
        total += sum(difference**2)
    return total / len(x)


def test_against_loops_and_the_authors_function():
    """`align_loss` of github.com/ssnl/align_uniform is (x - y).norm(p=2, dim=1).pow(alpha).mean(), of vectors of length 1."""
    x, y = spread_cloud(40, 6) - 9, spread_cloud(40, 6, 1) - 9
    value = alignment(x, y)
    assert isinstance(value, float) and value == pytest.approx(by_loops_positives(x, y), abs=1e-12)
    one, other = (torch.nn.functional.normalize(torch.from_numpy(side), dim=1) for side in (x, y))
    assert value == pytest.approx(float((one - other).norm(p=2, dim=1).pow(2).mean()), abs=1e-9)
    assert alignment(torch.from_numpy(x), torch.from_numpy(y)).item() == pytest.approx(value)
    assert alignment(x * 1e-200, y * 1e200) == pytest.approx(value, abs=1e-12)


def test_zero_vectors_are_left_out():
    x, y = np.eye(4), np.roll(np.eye(4), 1, axis=0)
    x[0] = y[2] = 0
    assert alignment(x, y) == pytest.approx(2)
    with pytest.warns(UndefinedWarning, match="no pair"):
        assert np.isnan(alignment(np.zeros((3, 2)), np.ones((3, 2))))
