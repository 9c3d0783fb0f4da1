"""Alignment against the authors' public function re-derived, closed forms, and the coverage of its interval."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz.metrics import UndefinedWarning, alignment, alignment_interval


def by_loops(x, y, alpha):
    total = 0.0
    for one, other in zip(x, y, strict=True):
        difference = one / np.sqrt(sum(one * one)) - other / np.sqrt(sum(other * other))
        total += np.sqrt(sum(difference**2)) ** alpha
    return total / len(x)


@pytest.mark.parametrize("alpha", [0.5, 1, 2, 3])
def test_against_loops_and_the_authors_function(alpha):
    """`align_loss` of github.com/ssnl/align_uniform is (x - y).norm(p=2, dim=1).pow(alpha).mean(), of vectors of length 1."""
    x, y = spread_cloud(40, 6) - 9, spread_cloud(40, 6, 1) - 9
    value = alignment(x, y, alpha)
    assert isinstance(value, float) and value == pytest.approx(by_loops(x, y, alpha), abs=1e-12)
    one, other = (torch.nn.functional.normalize(torch.from_numpy(side), dim=1) for side in (x, y))
    assert value == pytest.approx(float((one - other).norm(p=2, dim=1).pow(alpha).mean()), abs=1e-9)
    assert alignment(torch.from_numpy(x), torch.from_numpy(y), alpha).item() == pytest.approx(value)
    assert alignment(x * 1e-200, y * 1e200, alpha) == pytest.approx(value, abs=1e-12)


def test_zero_vectors_are_left_out():
    x, y = np.eye(4), np.roll(np.eye(4), 1, axis=0)
    x[0] = y[2] = 0
    assert alignment(x, y) == pytest.approx(2)
    assert alignment_interval(x, y).groups == 2
    with pytest.warns(UndefinedWarning, match="no pair"):
        assert np.isnan(alignment(np.zeros((3, 2)), np.ones((3, 2))))


def test_nineteen_of_twenty_intervals_contain_the_mean():
    """The vectors lie on the circle, at an angle to their partners that is uniform: E ‖x̂ − ŷ‖² is 2."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(1000):
        angle, turn = rng.uniform(0, 2 * np.pi, size=(2, 30))
        x, y = (np.stack([np.cos(at), np.sin(at)], axis=1) for at in (angle, angle + turn))
        found = alignment_interval(x, y)
        inside.append(found.low <= 2 <= found.high)
    assert found.estimate == alignment(x, y) and found.n == found.groups == 30
    assert 0.93 <= np.mean(inside) <= 0.97
