"""What the penalties on one cloud share: which cloud, their strength, and clouds on which little is defined."""

from __future__ import annotations

import math

import pytest
import torch

from isoviz import metrics
from isoviz.methods import catalogue
from isoviz.methods.protocol import CloudPenalty, Representations
from tests.methods.attaching import attached

SLUGS = [slug for slug, method in catalogue().items() if issubclass(method, CloudPenalty)]
every = pytest.mark.parametrize("slug", SLUGS)


def reps(batch=6, length=7, width=5, layers=3, seed=0):
    """Rows of different lengths; the padding holds large numbers, and every vector is different."""
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.arange(length)[None] < torch.tensor([length, 3, 5, 2, 7, 4])[:batch, None]).long()
    hidden = tuple(
        torch.randn(batch, length, width, generator=generator) + 99 * (mask[..., None] == 0) for _ in range(layers)
    )
    pooled = torch.randn(batch, width, generator=generator)
    return Representations(hidden[-1][:, 0], pooled, hidden[-1], hidden, mask, torch.randn(2, width))


def value(slug, points, **params):
    """The term of a cloud given as pooled vectors, by a new method."""
    return attached(slug, **params).penalties(given(points))[slug]


def given(points):
    return Representations(points, points, points[:, None], (points[:, None],), torch.ones(len(points), 1), points)


@every
def test_it_acts_on_the_cloud_that_was_chosen(slug):
    batch = reps()
    tokens = batch.hidden_states[-1][batch.attention_mask.bool()]
    for chosen, points in (
        ({}, batch.pooled),
        ({"on": "cls"}, batch.cls),
        ({"on": "tokens"}, tokens),
    ):
        term = attached(slug, **chosen).penalties(batch)[slug]
        assert float(term) == pytest.approx(float(value(slug, points)), rel=1e-6), chosen


@every
def test_strength_multiplies_the_term_and_zero_adds_none(slug):
    batch = reps()
    one, three = (attached(slug, lam=lam).penalties(batch)[slug] for lam in (1.0, 3.0))
    assert float(one) != 0
    assert float(three) == pytest.approx(3 * float(one), rel=1e-6)
    assert attached(slug, lam=0.0).penalties(batch) == {}


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("cloud", ["one point", "equal points", "zeros", "one zero", "tiny", "large"])
def test_value_and_gradient_stay_finite(slug, cloud, dtype):
    points = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    points = {
        "one point": points[:1],
        "equal points": points[:1].repeat(12, 1),
        "zeros": torch.zeros(12, 5),
        "one zero": points * (torch.arange(12) > 0)[:, None],
        "tiny": 1e-20 * points,
        "large": 1e4 * points,
    }[cloud]
    points = points.to(dtype).requires_grad_()
    term = value(slug, points)
    assert term.dtype == torch.float32
    term.backward()
    assert torch.isfinite(term) and torch.isfinite(points.grad).all()
    if cloud != "large":  # a covariance grows with the square of the vectors
        assert points.grad.abs().max() < 1e3


@pytest.mark.parametrize("slug", [slug for slug in SLUGS if slug != "visreg"])  # which stops a gradient: its own test
@pytest.mark.parametrize("n", [4, 9])
def test_gradient_is_that_of_finite_differences(slug, n):
    """Fewer and more points than dimensions."""
    points = torch.randn(n, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda cloud: value(slug, cloud, lam=1.0), (points,), eps=1e-6, atol=1e-6)


def test_uniformity_is_the_measure_and_a_plain_loop():
    points = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(value("uniformity", points, lam=1.0)) == pytest.approx(metrics.uniformity(points.numpy()))
    unit = [point / point.norm() for point in points]
    for t in (0.5, 3.0):
        terms = [
            math.exp(-t * float((x - y).norm()) ** 2) for i, x in enumerate(unit) for j, y in enumerate(unit) if i != j
        ]
        expected = math.log(sum(terms) / len(terms))
        assert float(value("uniformity", points, lam=2.0, sharpness=t)) == pytest.approx(2 * expected)
