"""SIGReg against quadrature, the authors' program, and what its traps claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from isoviz.methods.sigreg import epps_pulley
from tests.methods.attaching import attached
from tests.methods.test_cloud_penalties import given, value


def drawn(n=20, m=3, seed=0):
    return np.random.default_rng(seed).standard_t(4, size=(n, m)) * 1.5 + 0.5


def by_quadrature(x, end=np.inf):
    """n ∫ |φ̂ − φ|² exp(−t²/2) of one projection, by an adaptive rule."""

    def integrand(t):
        normal = math.exp(-t * t / 2)
        return abs(np.exp(1j * t * x).mean() - normal) ** 2 * normal

    return len(x) * 2 * quad(integrand, 0, end, epsabs=1e-12, epsrel=1e-12, limit=500)[0]


def authors(x, knots, t_max):
    """EppsPulley.forward of rbalestr-lab/lejepa, commit eddffdd, one number at a time."""
    total, step = 0.0, t_max / (knots - 1)
    for k in range(knots):
        t, weight = k * step, step if k in (0, knots - 1) else 2 * step
        normal = math.exp(-(t**2) / 2)
        real = sum(math.cos(t * a) for a in x) / len(x) - normal
        imaginary = sum(math.sin(t * a) for a in x) / len(x)
        total += weight * normal * (real**2 + imaginary**2)
    return total * len(x)


def test_epps_pulley_is_the_integral():
    x = drawn()
    fine = float(epps_pulley(torch.tensor(x), 129, 10.0))
    assert fine == pytest.approx(np.mean([by_quadrature(column) for column in x.T]), abs=1e-6)


@pytest.mark.parametrize("knots", [3, 17])
def test_epps_pulley_is_the_authors_program(knots):
    x = drawn(seed=2)
    expected = np.mean([authors(column, knots, 3.0) for column in x.T])
    assert float(epps_pulley(torch.tensor(x), knots, 3.0)) == pytest.approx(expected, rel=1e-12)
    assert float(epps_pulley(torch.tensor(x, dtype=torch.float32), knots, 3.0)) == pytest.approx(expected, rel=1e-5)


def test_the_term_is_the_mean_over_unit_directions():
    points = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    directions = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).double().numpy()  # of the first batch
    directions /= np.sqrt((directions**2).sum(axis=0))
    projections = points.double().numpy() @ directions
    expected = 0.3 * np.mean([authors(column, 17, 3.0) for column in projections.T])
    assert float(value("sigreg", points, lam=0.3, directions=6)) == pytest.approx(expected, rel=1e-5)


def test_directions_are_new_in_each_batch_and_depend_on_nothing_else():
    batch = given(torch.randn(10, 4, generator=torch.Generator().manual_seed(0)))
    method = attached("sigreg", directions=2)
    torch.manual_seed(1)
    first, second, third = (float(method.penalties(batch)["sigreg"]) for _ in range(3))
    assert len({first, second, third}) == 3
    torch.manual_seed(2)
    before = torch.get_rng_state()
    other = attached("sigreg", directions=2)
    assert float(other.penalties(batch)["sigreg"]) == first
    assert torch.equal(torch.get_rng_state(), before)  # dropout draws as it would without the penalty
    resumed = attached("sigreg", directions=2)
    resumed.state.load_state_dict(other.state.state_dict())
    assert float(resumed.penalties(batch)["sigreg"]) == second
