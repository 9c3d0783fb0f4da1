"""IsoBN against plain loops and hand-made sequences."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from isoviz.methods.isobn import isobn_scale
from tests.methods import attaching
from tests.methods.attaching import reps
from tests.posthoc.clouds import isobn_by_loops

attached = partial(attaching.attached, "isobn", 5)


class AuthorsSteps:
    """The authors' program on a batch (INK-USC/IsoBN, commit e8088a7, model.py), one number at a time."""

    def __init__(self, d, momentum, eps, beta):
        self.momentum, self.eps, self.beta = momentum, eps, beta
        self.cov = [[0.0] * d for _ in range(d)]
        self.std = [0.0] * d

    def __call__(self, batch, training):
        n, d = batch.shape
        if training:
            mean = [sum(batch[:, i]) / n for i in range(d)]
            for i in range(d):
                variance = sum((batch[row, i] - mean[i]) ** 2 for row in range(n)) / n
                self.std[i] += self.momentum * (variance**0.5 - self.std[i])
                for j in range(d):
                    both = sum((batch[row, i] - mean[i]) * (batch[row, j] - mean[j]) for row in range(n)) / n
                    self.cov[i][j] += self.momentum * (both - self.cov[i][j])
        scale = []
        for i in range(d):
            squares = [max(-1, min(1, self.cov[i][j] / (self.std[i] * self.std[j]))) ** 2 for j in range(d)]
            scale.append(1 / (sum(squares) / d * self.std[i] + self.eps) ** self.beta)
        before = sum(self.cov[i][i] for i in range(d))
        after = sum(self.cov[i][i] * scale[i] ** 2 for i in range(d))
        return batch * np.array(scale) * (before / (after + self.eps)) ** 0.5


def cloud(n=50, d=5, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) @ generator.normal(size=(d, d)) + 3


@pytest.mark.parametrize("beta", [0.0, 0.25, 0.5, 1.0])
def test_scale_against_the_loop_and_the_total_variance_is_kept(beta):
    cov = np.cov(cloud().T, bias=True)
    scale = isobn_scale(torch.tensor(cov), torch.tensor(cov).diagonal().sqrt(), beta, 0.1).numpy()
    np.testing.assert_allclose(scale, isobn_by_loops(cov, beta, 0.1), rtol=1e-12)
    assert (scale**2 * cov.diagonal()).sum() == pytest.approx(cov.trace(), rel=1e-12)


def test_moving_statistics_over_three_batches_by_hand():
    batches = [cloud(seed=s) for s in range(3)]
    method = attached(momentum=0.25)
    for points in batches:
        method.transform(reps(torch.tensor(points, dtype=torch.float32)), training=True)
    average = np.zeros((5, 5))
    for points in batches:
        average = 0.75 * average + 0.25 * np.cov(points.T, bias=True)
    expected = isobn_by_loops(average / (1 - 0.75**3), 0.5, 0.1)
    np.testing.assert_allclose(method.scale().numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_code_form_does_step_by_step_what_the_authors_program_does(beta):
    """From zeros, σ and Σ apart: in the first steps most correlations are cut to ±1, and ε weighs against a small Σ."""
    method, authors = attached(form="code", eps=1e-3, beta=beta), AuthorsSteps(5, 0.05, 1e-3, beta)
    # of unlike size: then diag Σ̄ is not σ̄²
    batches = [cloud(seed=step) * (0.01 if step % 3 else 3) for step in range(12)]
    for batch in batches:
        out = method.transform(reps(torch.tensor(batch, dtype=torch.float32)), training=True)
        np.testing.assert_allclose(out.numpy(), authors(batch, training=True), rtol=2e-6)
    out = method.transform(reps(torch.tensor(batches[0], dtype=torch.float32)), training=False)
    np.testing.assert_allclose(out.numpy(), authors(batches[0], training=False), rtol=2e-6)


def test_dimension_without_variance_changes_nothing():
    points = torch.tensor(cloud(), dtype=torch.float32)
    points[:, 2] = 1.5
    out = attached().transform(reps(points), training=True)
    assert torch.isfinite(out).all()
    without = [0, 1, 3, 4]
    cov = np.cov(points[:, without].T.numpy(), bias=True)
    np.testing.assert_allclose(
        out[:, without].numpy(), points[:, without].numpy() * isobn_by_loops(cov, 0.5, 0.1), rtol=1e-3
    )


def test_all_rows_equal_and_a_single_row():
    method = attaching.attached("isobn", 3)
    assert torch.isfinite(method.transform(reps(torch.ones(4, 3)), training=True)).all()
    single = attaching.attached("isobn", 3)
    points = torch.randn(1, 3)
    assert torch.equal(single.transform(reps(points), training=True), points)
