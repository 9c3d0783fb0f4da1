"""Both spectrum controls: their term and target by hand, what they refuse, and that the default cannot empty a weight."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.methods.attaching import attached

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


@pytest.mark.parametrize("slug", SLUGS)
def test_the_target_stays_with_the_start_when_resumed(slug):
    method = attached(slug, output=weight_of())
    resumed = attached(slug, output=weight_of(seed=5, scale=3.0))  # the weight has moved since
    resumed.state.load_state_dict(method.state.state_dict())
    assert torch.equal(resumed.buffer("target"), method.buffer("target"))
