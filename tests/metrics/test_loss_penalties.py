"""The penalties as a training step meets them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud, value_and_gradient

from isoviz.metrics import (
    Shrinkage,
    cosine_penalty,
    isoscore,
    isoscore_star,
    isoscore_unbiased,
    istar_penalty,
    istar_unbiased_penalty,
)

PENALTIES = {
    "istar": lambda x: istar_penalty(x, None, 0.0),
    "istar with shrinkage": lambda x: istar_penalty(x, Shrinkage(torch.eye(x.shape[1])), 0.2),
    "unbiased": istar_unbiased_penalty,
    "cosine": cosine_penalty,
}
penalties = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())


def cosine_by_pairs(rows):
    unit = rows / rows.norm(dim=1, keepdim=True)
    cosines = unit @ unit.T
    return (cosines.sum() - cosines.diagonal().sum()) / len(rows) ** 2


def test_the_istar_penalties_are_one_minus_the_scores():
    points, cov = torch.from_numpy(spread_cloud(70, 12)), torch.from_numpy(np.cov(spread_cloud(70, 12, 1).T))
    star = isoscore_star(points, cov, 0.2)
    for shrinkage in (cov, Shrinkage(cov)):
        torch.testing.assert_close(istar_penalty(points, shrinkage, 0.2), 1 - star, rtol=1e-14, atol=0)
    torch.testing.assert_close(istar_penalty(points, None, 0.0), 1 - isoscore(points), rtol=1e-14, atol=0)
    torch.testing.assert_close(istar_unbiased_penalty(points), 1 - isoscore_unbiased(points), rtol=1e-14, atol=0)


def test_the_cosine_penalty_is_the_sum_over_pairs_in_value_and_gradient():
    rows = torch.from_numpy(spread_cloud(40, 9))
    value, grad = value_and_gradient(cosine_penalty, rows)
    expected, expected_grad = value_and_gradient(cosine_by_pairs, rows)
    torch.testing.assert_close(value, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-10, atol=1e-16)
    assert cosine_penalty(torch.tensor([[1.0, 0], [-1, 0]])).item() == pytest.approx(-1 / 2)


def test_the_cosine_penalty_leaves_zero_rows_out():
    rows = torch.from_numpy(spread_cloud(10, 4))
    padded = torch.cat([rows, torch.zeros(5, 4, dtype=torch.float64)])
    value, grad = value_and_gradient(cosine_penalty, padded)
    expected, expected_grad = value_and_gradient(cosine_penalty, rows)
    torch.testing.assert_close(value, expected, rtol=1e-14, atol=0)
    torch.testing.assert_close(grad[:10], expected_grad)
    assert torch.isfinite(grad).all()


@penalties
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_an_undefined_batch_gives_a_zero_that_is_connected(penalty, rows):
    """All rows equal; for the cosine only an empty or single row has no pairs, and equal rows are at its maximum."""
    points = torch.full((rows, 6), 0.1).requires_grad_()
    value = penalty(points)
    value.backward()
    assert torch.isfinite(value)
    assert points.grad.abs().max() < 1e-6 if rows else points.grad.numel() == 0
    if rows < 2 or penalty in (PENALTIES["istar"], PENALTIES["unbiased"]):
        assert value.item() == pytest.approx(0.0, abs=1e-6 if penalty is cosine_penalty else 0.0)


def test_rows_equal_up_to_rounding_do_not_explode():
    points = torch.full((16, 6), 1000.0)
    points[3, 2] += 3e-5  # less than the spacing of float32 at 1000: may or may not survive
    points[5, 1] = torch.nextafter(points[5, 1], torch.tensor(2000.0))
    for penalty in (PENALTIES["istar"], PENALTIES["unbiased"]):
        value, grad = value_and_gradient(penalty, points)
        assert value.item() == 0.0
        assert grad.abs().max() == 0.0


@penalties
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(penalty, dtype):
    points = torch.randn(80, 12, generator=torch.Generator().manual_seed(0)).to(dtype)
    value, grad = value_and_gradient(penalty, points)
    expected, expected_grad = value_and_gradient(penalty, points.float())
    assert value == expected
    assert value.dtype == torch.float32
    assert grad.dtype == dtype
    torch.testing.assert_close(grad, expected_grad.to(dtype))


@penalties
@pytest.mark.parametrize("n, d", [(80, 12), (8, 40)])
def test_autocast_changes_nothing_even_around_the_backward(penalty, n, d):
    points = torch.randn(n, d, generator=torch.Generator().manual_seed(0)) + 3
    expected, expected_grad = value_and_gradient(penalty, points)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, grad = value_and_gradient(penalty, points)
    assert value == expected
    assert torch.equal(grad, expected_grad)
