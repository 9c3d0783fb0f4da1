"""GOR against plain loops and sentence-transformers' loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.methods.test_cloud_penalties import value


def cloud(n, d, seed=0, shift=0.5):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + shift


def loop_moments(points):
    """The mean cosine and the mean squared cosine over pairs, pair by pair."""
    points = points.numpy()
    cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for i, a in enumerate(points) for j, b in enumerate(points) if i != j]
    return np.mean(cosines), np.mean(np.square(cosines))


@pytest.mark.parametrize(("n", "d"), [(4, 9), (9, 4), (2, 3)])
def test_both_forms_are_the_loops(n, d):
    points = cloud(n, d)
    first, second = loop_moments(points)
    zhang = first**2 + max(0.0, second - 1 / d)
    assert float(value("gor", points, lam=2.0)) == pytest.approx(2 * zhang, rel=1e-10)
    assert float(value("gor", points, lam=2.0, form="embeddinggemma")) == pytest.approx(2 * second, rel=1e-10)


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_loss_of_sentence_transformers(seed, shift):
    from sentence_transformers.sentence_transformer.losses import GlobalOrthogonalRegularizationLoss

    points = cloud(12, 6, seed, shift).float().requires_grad_()
    peer = sum(GlobalOrthogonalRegularizationLoss(None).compute_loss_from_embeddings([points]).values())
    (expected,) = torch.autograd.grad(peer, points)
    ours = value("gor", points, lam=1.0)
    (gradient,) = torch.autograd.grad(ours, points)
    assert ours.item() == pytest.approx(peer.item(), abs=1e-6)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)


def test_a_point_without_direction_counts_as_orthogonal():
    points = torch.ones(3, 4)
    points[2] = 0
    assert float(value("gor", points, lam=1.0, form="embeddinggemma")) == pytest.approx(2 / 6)
