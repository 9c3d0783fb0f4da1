"""SIGReg against quadrature, the closed form of Epps and Pulley, the authors' program, and what its traps claim."""

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


def closed_form(x):
    """The same integral from Gaussian integrals: pairs, points, and the constant."""
    n = len(x)
    pairs = sum(math.exp(-((a - b) ** 2) / 2) for a in x for b in x) / n**2
    points = sum(math.exp(-(a**2) / 4) for a in x) / n
    return n * math.sqrt(2 * math.pi) * (pairs - math.sqrt(2) * points + 1 / math.sqrt(3))


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


def algorithm_1(x):
    """The paper's listing: the trapezoidal rule on 17 points of [−5, 5]."""
    t = np.linspace(-5, 5, 17)
    normal = np.exp(-0.5 * t**2)
    error = np.abs(np.exp(1j * np.outer(x, t)).mean(axis=0) - normal) ** 2 * normal
    return np.trapezoid(error, t) * len(x)


def test_epps_pulley_is_the_integral():
    x = drawn()
    fine = float(epps_pulley(torch.tensor(x), 129, 10.0))
    assert fine == pytest.approx(np.mean([by_quadrature(column) for column in x.T]), abs=1e-6)
    assert fine == pytest.approx(np.mean([closed_form(column) for column in x.T]), abs=1e-6)


def test_default_grid_misses_little_of_the_integral():
    x = drawn(n=32, m=20, seed=1)
    ours = float(epps_pulley(torch.tensor(x), 17, 3.0))
    assert ours == pytest.approx(np.mean([by_quadrature(column, 3.0) for column in x.T]), rel=1e-3)
    assert ours == pytest.approx(np.mean([closed_form(column) for column in x.T]), rel=0.05)


@pytest.mark.parametrize("knots", [3, 17])
def test_epps_pulley_is_the_authors_program(knots):
    x = drawn(seed=2)
    expected = np.mean([authors(column, knots, 3.0) for column in x.T])
    assert float(epps_pulley(torch.tensor(x), knots, 3.0)) == pytest.approx(expected, rel=1e-12)
    assert float(epps_pulley(torch.tensor(x, dtype=torch.float32), knots, 3.0)) == pytest.approx(expected, rel=1e-5)


def test_nine_knots_up_to_five_are_the_papers_algorithm():
    x = drawn(seed=3)
    assert float(epps_pulley(torch.tensor(x), 9, 5.0)) == pytest.approx(
        np.mean([algorithm_1(column) for column in x.T]), rel=1e-12
    )


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


def test_vectors_of_length_one_need_the_scale():
    """Without it a cloud that covers the sphere and one that lies on a line through 0 give almost the same number."""
    generator = torch.Generator().manual_seed(0)
    sphere = torch.nn.functional.normalize(torch.randn(64, 256, generator=generator), dim=1)
    line = sphere[:1] * (1 - 2 * (torch.arange(64) % 2))[:, None]
    constant = 64 * 2 * quad(lambda t: (1 - math.exp(-t * t / 2)) ** 2 * math.exp(-t * t / 2), 0, 3)[0]
    plain = [float(value("sigreg", points, lam=1.0)) for points in (sphere, line)]
    scaled = [float(value("sigreg", points, lam=1.0, scale=True)) for points in (sphere, line)]
    assert plain == pytest.approx([constant, constant], rel=0.02)
    assert scaled[0] < 1.5 and scaled[1] > 10 * scaled[0]
    assert float(value("sigreg", 16 * sphere, lam=1.0)) == pytest.approx(scaled[0], rel=1e-5)  # √256


@pytest.mark.parametrize("n", [8, 500])
def test_a_gaussian_batch_has_the_stated_value(n):
    """E = ∫ (1 − exp(−t²)) exp(−t²/2) dt at any n."""
    points = torch.randn(n, 64, generator=torch.Generator().manual_seed(n))
    values = [float(value("sigreg", points[:, start : start + 16], lam=1.0)) for start in range(0, 64, 16)]
    assert np.mean(values) == pytest.approx(math.sqrt(2 * math.pi) * (1 - 1 / math.sqrt(3)), abs=0.25)


def test_the_pull_fades_far_from_the_target():
    """A point at 8 standard deviations is pulled a hundred times less than one at 2."""
    crowd = torch.randn(63, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pulls = []
    for place in (2.0, 8.0):
        cloud = torch.cat([crowd, torch.full((1, 1), place, dtype=torch.float64)]).requires_grad_()
        epps_pulley(cloud, 129, 10.0).backward()
        pulls.append(abs(float(cloud.grad[-1])))
    assert pulls[1] < pulls[0] / 100


def test_descending_makes_a_stretched_cloud_more_isotropic():
    from isoviz.metrics import isoscore, mean_cosine

    points = torch.randn(200, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.5, 1, 0.5, 0.2]) + 0.5
    before = float(isoscore(points))
    points.requires_grad_()
    method, optimizer = attached("sigreg", width=4, lam=1.0), torch.optim.Adam([points], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        method.penalties(given(points))["sigreg"].backward()
        optimizer.step()
    assert before < 0.5 and float(isoscore(points.detach())) > 0.95
    assert abs(float(mean_cosine(points.detach()))) < 0.05
    assert points.detach().std(dim=0).numpy() == pytest.approx(np.ones(4), abs=0.15)
