"""Both spectrum controls: term and target by hand, gradients by autograd through a singular value decomposition."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from isoviz.methods.spectrum_control import spectrum_penalty
from tests.methods.attaching import attached
from tests.metrics.reference_clouds import value_and_gradient

SLUGS = ["spectrum_pol", "spectrum_exp"]


def weight_of(rows=3, columns=10, scale=0.02, seed=0):
    return torch.nn.Parameter(scale * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)))


def reps(weight):
    return SimpleNamespace(output_weight=weight)


def by_hand(weight, lam, targets):
    return lam * sum((s - t) ** 2 for s, t in zip(np.linalg.svd(weight, compute_uv=False), targets, strict=True))


def test_terms_with_a_given_scale():
    weight = weight_of()
    values = weight.detach().double().numpy()
    terms = attached("spectrum_pol", output=weight, lam=3.0, c1=0.2, gamma=-1.5).penalties(reps(weight))
    assert list(terms) == ["spectrum_pol"]
    expected = by_hand(values, 3.0, [0.2 * k**-1.5 for k in (1, 2, 3)])
    assert float(terms["spectrum_pol"]) == pytest.approx(expected, rel=1e-5)
    terms = attached("spectrum_exp", output=weight, lam=3.0, c1=0.2, c2=0.4, gamma=1.2).penalties(reps(weight))
    assert list(terms) == ["spectrum_exp"]
    expected = by_hand(values, 3.0, [0.2 * math.exp(-0.4 * k**1.2) for k in (1, 2, 3)])
    assert float(terms["spectrum_exp"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("slug", SLUGS)
def test_default_target_has_the_weights_norm_at_the_start(slug):
    weight = weight_of(scale=0.7)
    target = attached(slug, output=weight).buffer("target")
    assert target.shape == (3,)
    assert float(target.double().square().sum()) == pytest.approx(float(weight.double().square().sum()), rel=1e-6)


def matrix(rows, columns, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(2, 8), (3, 7), (1, 5), (6, 6), (40, 9)])
@pytest.mark.parametrize("scale", [0.02, 1.0, 50.0])
def test_value_and_gradient_match_the_decomposition(shape, scale):
    weight = scale * matrix(*shape)
    target = torch.linspace(2.0, 0.5, min(shape), dtype=torch.float64)
    value, gradient = value_and_gradient(lambda w: spectrum_penalty(w, target), weight)
    expected, oracle = value_and_gradient(lambda w: (torch.linalg.svdvals(w) - target).square().sum(), weight)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradient, oracle, rtol=1e-8, atol=1e-8)


def test_repeated_singular_values_give_the_gradient_of_their_whole_space():
    # all σ equal s: U diag(σ − t) Vᵀ with equal targets is (s − t)/s · W, whatever basis is chosen
    weight = 3.0 * torch.linalg.qr(matrix(12, 4))[0]
    target = torch.full((4,), 1.0, dtype=torch.float64)
    value, gradient = value_and_gradient(lambda w: spectrum_penalty(w, target), weight)
    assert float(value) == pytest.approx(4 * 4.0)
    torch.testing.assert_close(gradient, 2 * (2 / 3) * weight, rtol=1e-10, atol=1e-12)
    _, falling = value_and_gradient(lambda w: spectrum_penalty(w, torch.tensor([4.0, 3.0, 2.0, 1.0])), weight)
    assert torch.isfinite(falling).all()


def test_rank_deficient_and_zero_weights_are_finite():
    thin = torch.zeros(4, 6, dtype=torch.float64)
    thin[0] = matrix(1, 6)[0]
    target = torch.tensor([2.0, 1.5, 1.0, 0.5])
    value, gradient = value_and_gradient(lambda w: spectrum_penalty(w, target), thin)
    assert float(value) == pytest.approx((float(thin[0].norm()) - 2) ** 2 + 1.5**2 + 1 + 0.25)
    assert torch.isfinite(gradient).all()
    assert float(gradient[1:].abs().max()) < 1e-6  # a direction that is not there is not made up
    value, gradient = value_and_gradient(lambda w: spectrum_penalty(w, target), torch.zeros(4, 6))
    assert float(value) == pytest.approx(7.5)
    assert torch.equal(gradient, torch.zeros(4, 6))


def test_a_weight_that_diverged_is_reported_as_nan():
    weight = torch.full((2, 4), math.nan, requires_grad=True)
    assert torch.isnan(spectrum_penalty(weight, torch.ones(2)))
    assert torch.isnan(spectrum_penalty(torch.full((2, 4), math.inf), torch.ones(2)))


def test_half_precision_and_autocast_lose_nothing():
    weight = (0.02 * matrix(2, 64)).float()
    target = torch.tensor([0.2, 0.1])
    value, gradient = value_and_gradient(lambda w: spectrum_penalty(w, target), weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        same, again = value_and_gradient(lambda w: spectrum_penalty(w, target), weight)
    assert value.dtype == torch.float32
    assert torch.equal(value, same)
    assert torch.equal(gradient, again)
    half = weight.bfloat16()
    assert spectrum_penalty(half, target).dtype == torch.float32
    assert float(spectrum_penalty(half, target)) == pytest.approx(float(spectrum_penalty(half.double(), target)))
