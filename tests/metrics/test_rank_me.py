"""RankMe against the singular values themselves, in arrays, tensors and running sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz import metrics
from isoviz.metrics import rankme


def by_singular_values(x):
    """As the paper writes it (equation 1), its ε left out."""
    total = sum(values := np.linalg.svd(x, compute_uv=False))
    return np.exp(-sum(value / total * np.log(value / total) for value in values if value > 1e-12 * total))


@pytest.mark.parametrize("n, d", [(60, 8), (9, 30), (5, 5), (1, 4)])
def test_against_the_singular_values(n, d):
    x = spread_cloud(n, d)
    expected = by_singular_values(x)
    assert isinstance(rankme(x), float) and rankme(x) == pytest.approx(expected, rel=1e-7)
    assert rankme(torch.from_numpy(x)).item() == pytest.approx(expected, rel=1e-7)
    assert rankme(x * 1e200) == pytest.approx(rankme(x), rel=1e-9)


def test_known_values():
    assert rankme(np.eye(6)[:, :4]) == pytest.approx(4)
    assert rankme(np.outer(np.arange(1.0, 9), np.ones(5))) == pytest.approx(1)
    assert rankme(np.diag([3.0, 1.0])) == pytest.approx(4 / 3**0.75)  # exp(−¾ log ¾ − ¼ log ¼)
    assert rankme(np.eye(6) + 100) < 1.2 < 5 < metrics.effective_rank(np.eye(6) + 100)  # the mean is a direction


def test_gradient():
    x = torch.from_numpy(spread_cloud(7, 3)).requires_grad_()
    assert torch.autograd.gradcheck(rankme, (x,))
