"""The moments of a cloud in torch, with a hand-written backward pass.

∂T/∂X̃ = 2X̃/(n−1), ∂F/∂X̃ = 4X̃Σ/(n−1): one product in each direction. No eigenvalue gaps occur, so repeated or zero
eigenvalues are harmless. Products use the input's precision (float32 for half precision), sums float64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isoviz.errors import InputError
from isoviz.metrics.cloud import check_shape, sum_dtype, working_dtype
from isoviz.metrics.moments import Moments, prefers_gram


def checked_cloud(points: Tensor) -> Tensor:
    """The cloud (n, d) in its working precision, connected to the graph.

    Raises:
        InputError: (a ValueError) not two-dimensional, no dimension, or non-finite.
    """
    check_shape(tuple(points.shape), "points")
    finite = torch.isfinite(points.detach())
    if not bool(finite.all()):
        count = int((~finite).sum())
        raise InputError(f"points must be finite, got {count} of {points.numel()} entries that are nan or infinite")
    return points.to(working_dtype(points))


def tensor_moments(
    points: Tensor,
    shrinkage: tuple[Tensor, Tensor, Tensor] | None = None,
    zeta: float = 0.0,
    quartic: bool = False,
) -> Moments:
    """T, F and, on request, Q as 0-d tensors that carry gradients to `points`; never synchronises with the device.

    Args:
        points: (n >= 2, d), float32 or float64.
        shrinkage: Σ_S (d, d), its trace and its squared Frobenius norm, without gradient.
        zeta: the weight of Σ_S.
        quartic: also compute Q (only without shrinkage).
    """
    n, d = points.shape
    if zeta == 0.0:
        shrinkage = None
    # Autocast would run the products in half precision, also in a backward pass inside its context.
    with torch.autocast(points.device.type, enabled=False):
        trace, frobenius, fourth, collapsed = _Moments.apply(points, shrinkage, zeta, quartic)
    return Moments(n, d, trace, frobenius, fourth, None, collapsed)


class _Moments(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, points: Tensor, shrinkage: tuple[Tensor, Tensor, Tensor] | None, zeta: float, quartic: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        n, d = points.shape
        wide = sum_dtype(points.device)
        centred = points - points[:1]  # subtract the first point first: equal points become exactly zero
        offset = centred.mean(0, keepdim=True)
        centred -= offset
        mean = points[0] + offset[0]
        gram = prefers_gram(n, d)
        keep = 1.0 - zeta
        image: Tensor | None = None  # X̃Σ_S, needed in the Gram form only
        if gram:
            matrix = (centred @ centred.T).to(wide) / (n - 1)
            variances = centred.square().sum(0, dtype=wide) / (n - 1)
        else:
            matrix = symmetric_product(centred).to(wide) / (n - 1)
            variances = matrix.diagonal()
        collapsed = (variances <= (torch.finfo(points.dtype).eps * mean.to(wide)).square()).all()
        trace = variances.sum()
        if shrinkage is None:
            frobenius = matrix.square().sum()
        else:
            covariance, shrinkage_trace, shrinkage_frobenius = shrinkage
            trace = keep * trace + zeta * shrinkage_trace.to(wide)
            if gram:
                image = centred @ covariance.to(points.dtype)
                inner = (centred * image).sum(dtype=wide) / (n - 1)
                frobenius = (
                    keep**2 * matrix.square().sum() + 2 * zeta * keep * inner + zeta**2 * shrinkage_frobenius.to(wide)
                )
            else:
                matrix = torch.lerp(matrix, covariance.to(wide), zeta)  # Σ_ζ
                frobenius = matrix.square().sum()
        squares = centred.square().sum(1, dtype=wide) if quartic else None
        fourth = torch.zeros_like(frobenius) if squares is None else squares.square().sum() / (n - 1)
        ctx.save_for_backward(centred, matrix, image, squares)
        ctx.gram, ctx.zeta = gram, zeta
        ctx.mark_non_differentiable(collapsed)
        return trace, frobenius, fourth, collapsed

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None, None]:
        grad_trace, grad_frobenius, grad_fourth, _ = grads
        centred, matrix, image, squares = ctx.saved_tensors
        n = centred.shape[0]
        keep = 1.0 - ctx.zeta
        of_trace = 2.0 * keep / (n - 1) * grad_trace
        of_frobenius = 4.0 * keep / (n - 1) * grad_frobenius
        with torch.autocast(centred.device.type, enabled=False):
            # The left factor of X̃ in the Gram form, the right one otherwise; the identity carries ∂T. Scalar
            # weights are applied in float64: for a small cloud they are huge and the matrix tiny.
            factor = matrix * (of_frobenius * keep if ctx.gram else of_frobenius)
            factor.diagonal().add_(of_trace)
            factor = factor.to(centred.dtype)
            grad = factor @ centred if ctx.gram else centred @ factor
            if image is not None:
                grad += (image.to(grad_trace.dtype) * (of_frobenius * ctx.zeta)).to(centred.dtype)
            if squares is not None:
                weights = (4.0 / (n - 1) * grad_fourth * squares).to(centred.dtype)
                pull = centred * weights.unsqueeze(1)
                grad += pull - pull.mean(0)  # the other terms are already centred
        return grad, None, None, None


def symmetric_product(x: Tensor) -> Tensor:
    """XᵀX. Torch has no symmetric kernel: on the CPU, four column blocks of the upper triangle take 0.6 of the time."""
    d = x.shape[1]
    if x.device.type != "cpu" or d < 256:
        return x.T @ x
    product = x.new_empty(d, d)
    width = -(-d // 4)
    for start in range(0, d, width):
        stop = min(start + width, d)
        torch.mm(x[:, :stop].T, x[:, start:stop], out=product[:stop, start:stop])
        product[start:stop, :start] = product[:start, start:stop].T
    return product
