"""VISReg against a plain loop, at a Gaussian, near collapse (where SIGReg's gradient vanishes), and its terms apart."""

from __future__ import annotations

from statistics import NormalDist

import pytest
import torch

from isoviz.methods.visreg import terms
from tests.methods.test_cloud_penalties import value


def drawn(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(d: int, count: int, seed: int = 0) -> torch.Tensor:
    directions = torch.randn(d, count, generator=torch.Generator().manual_seed(seed)).double()
    return directions / directions.norm(dim=0)


def test_it_is_a_plain_loop() -> None:
    points = 0.3 + drawn(9, 4) * torch.tensor([0.5, 1.0, 2.0, 3.0])
    n, d = points.shape
    mean = [sum(float(x) for x in column) / n for column in points.T]
    std = [(sum((float(x) - m) ** 2 for x in column) / n) ** 0.5 for column, m in zip(points.T, mean, strict=True)]
    shape = 0.0
    for direction in unit(d, 6).T:
        projections = [
            sum((float(row[i]) - mean[i]) / std[i] * float(direction[i]) for i in range(d)) for row in points
        ]
        for k, projection in enumerate(sorted(projections), start=1):
            shape += (projection - NormalDist().inv_cdf(k / (n + 1))) ** 2 / (6 * n)
    expected = sum(m**2 for m in mean) / d + sum((1 - s) ** 2 for s in std) / d + shape
    assert float(value("visreg", points, lam=0.5, directions=6)) == pytest.approx(expected / 2, rel=1e-6)


@pytest.mark.parametrize("spread", [1e-2, 1e-4])
def test_near_collapse_its_gradient_stays_where_that_of_sigreg_vanishes(spread: float) -> None:
    points = (drawn(32, 6) * spread).requires_grad_()
    scale, whole, sigreg = (
        float(torch.autograd.grad(term, points)[0].norm())
        for term in (
            terms(points, unit(6, 4))[1],
            value("visreg", points, lam=1.0),
            value("sigreg", points, lam=1.0, directions=64),
        )
    )
    # each deviation's gradient has the length 1/√n at any spread
    assert scale == pytest.approx(2 / (6 * 32) ** 0.5, rel=2 * spread)
    assert whole > scale and sigreg < 30 * spread


def test_centre_scale_and_shape_are_decoupled() -> None:
    points, directions = drawn(24, 4) * torch.tensor([0.2, 1.0, 2.0, 5.0]), unit(4, 8)
    centre, scale, shape = terms(points, directions)
    moved, stretched = terms(points + 3.0, directions), terms(points * torch.tensor([1.0, 4.0, 0.5, 9.0]), directions)
    assert float(moved[0]) > float(centre) + 5
    torch.testing.assert_close(moved[1:], (scale, shape))
    assert float(stretched[1]) > float(scale) + 5 and float(stretched[2]) == pytest.approx(float(shape))
    points = points.requires_grad_()
    for place in (1, 2):  # no step of either moves the mean
        gradient = torch.autograd.grad(terms(points, directions)[place], points)[0]
        assert float(gradient.norm()) > 0.01 and float(gradient.sum(dim=0).abs().max()) < 1e-12


def test_the_gradient_of_the_shape_is_that_of_finite_differences_with_the_deviations_held() -> None:
    points, directions = drawn(9, 4) * torch.tensor([0.5, 1.0, 2.0, 3.0]), unit(4, 6)
    (gradient,) = torch.autograd.grad(terms(cloud := points.clone().requires_grad_(), directions)[2], cloud)
    std = points.std(dim=0, correction=0)
    quantiles = torch.tensor([NormalDist().inv_cdf(k / 10) for k in range(1, 10)], dtype=torch.float64)

    def shape(moved: torch.Tensor) -> torch.Tensor:
        projections = (moved - moved.mean(dim=0)) / std @ directions
        return ((projections.sort(dim=0).values - quantiles[:, None]) ** 2).mean()

    for place in range(points.numel()):
        step = torch.zeros(points.numel(), dtype=torch.float64)
        step[place] = 1e-6
        change = shape(points + step.view(9, 4)) - shape(points - step.view(9, 4))
        assert float(gradient.flatten()[place]) == pytest.approx(float(change) / 2e-6, abs=1e-7)
