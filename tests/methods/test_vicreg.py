"""VICReg's terms against the definitions of the authors' programs, one number at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.methods.test_cloud_penalties import value


def cloud(n, d, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) @ generator.normal(size=(d, d)) * 0.4 + 1


def authors(points, variance, covariance, gamma=1.0):
    """The two terms of one view in facebookresearch/vicreg, main_vicreg.py."""
    n, d = points.shape
    centred = [[points[row, i] - sum(points[:, i]) / n for i in range(d)] for row in range(n)]
    std_loss = cov_loss = 0.0
    for i in range(d):
        for j in range(d):
            both = sum(row[i] * row[j] for row in centred) / (n - 1)
            if i == j:
                std_loss += max(0.0, gamma - (both + 0.0001) ** 0.5) / d
            else:
                cov_loss += both**2 / d
    return variance * std_loss + covariance * cov_loss


def barlow_twins(points):
    """The off-diagonal sum of facebookresearch/barlowtwins, main.py, with both views equal."""
    n, d = points.shape
    normed = (points - points.mean(axis=0)) / np.sqrt(points.var(axis=0) + 1e-5)  # batch normalisation in training
    total = 0.0
    for i in range(d):
        for j in range(d):
            if i != j:
                total += (sum(row[i] * row[j] for row in normed) / n) ** 2
    return total


@pytest.mark.parametrize(("n", "d"), [(4, 7), (9, 4), (2, 3)])
def test_terms_are_the_authors(n, d):
    points = cloud(n, d)
    for weights in ((25.0, 1.0), (12.5, 1.0), (1.0, 0.0), (0.0, 1.0)):
        term = value("vicreg", torch.tensor(points), lam=0.5, variance=weights[0], covariance=weights[1])
        assert float(term) == pytest.approx(0.5 * authors(points, *weights), rel=1e-9, abs=1e-12)
    higher = value("vicreg", torch.tensor(points), lam=1.0, gamma=2.0, covariance=0.0)
    assert float(higher) == pytest.approx(authors(points, 25.0, 0.0, 2.0), rel=1e-9)


@pytest.mark.parametrize(("n", "d"), [(4, 7), (9, 4)])
def test_correlations_are_barlow_twins(n, d):
    points = cloud(n, d)
    term = value(
        "vicreg", torch.tensor(points), lam=1.0, variance=0.0, covariance=0.0051 * d, decorrelation="correlation"
    )
    assert float(term) == pytest.approx(0.0051 * barlow_twins(points), rel=1e-9)
