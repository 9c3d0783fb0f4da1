"""Both spectrum controls: their term and target by hand, what they refuse, and that the default cannot empty a weight."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from isoviz.errors import InputError
from isoviz.methods import check_params
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
@pytest.mark.parametrize("rows", [2, 5])
def test_the_default_cannot_empty_the_weight_and_a_small_scale_does(slug, rows):
    def trained(**params):
        weight = weight_of(rows)
        method = attached(slug, output=weight, **params)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        norms = [float(weight.norm())]
        for _ in range(200):
            optimizer.zero_grad()
            method.penalties(reps(weight))[slug].backward()
            optimizer.step()
            norms.append(float(weight.norm()))
        return method, weight, np.array(norms)

    method, weight, norms = trained()
    assert norms.min() > 0.9 * norms[0]
    assert norms[-1] == pytest.approx(norms[0], rel=1e-4)
    np.testing.assert_allclose(
        np.linalg.svd(weight.detach().numpy(), compute_uv=False), method.buffer("target"), rtol=1e-3
    )
    _, _, norms = trained(c1=1e-4)
    assert norms[-1] < 0.02 * norms[0]


@pytest.mark.parametrize("slug", SLUGS)
def test_the_target_stays_with_the_start_when_resumed(slug):
    method = attached(slug, output=weight_of())
    resumed = attached(slug, output=weight_of(seed=5, scale=3.0))  # the weight has moved since
    resumed.state.load_state_dict(method.state.state_dict())
    assert torch.equal(resumed.buffer("target"), method.buffer("target"))


@pytest.mark.parametrize("slug", SLUGS)
def test_strength_zero_adds_no_term_and_a_zero_weight_needs_a_scale(slug):
    weight = weight_of()
    assert attached(slug, output=weight, lam=0.0).penalties(reps(weight)) == {}
    empty = torch.nn.Parameter(torch.zeros(2, 4))
    with pytest.raises(InputError, match="give c1 above 0") as caught:
        attached(slug, output=empty)
    assert caught.value.field == "params.c1"
    assert torch.isfinite(attached(slug, output=empty, c1=1.0).penalties(reps(empty))[slug])


@pytest.mark.parametrize(
    ("slug", "params"),
    [
        *(("spectrum_pol", {"gamma": value}) for value in (0.0, 2, "steep", -99.0)),
        *(("spectrum_exp", {"gamma": value}) for value in (0, -0.5, float("nan"))),
        *(("spectrum_exp", {"c2": value}) for value in (0.0, -1.0)),
        ("spectrum_pol", {"lam": -1.0}),
    ],
)
def test_a_spectrum_that_does_not_decay_is_refused(slug, params):
    with pytest.raises(InputError) as caught:
        check_params(slug, params)
    assert caught.value.field == f"params.{next(iter(params))}"
