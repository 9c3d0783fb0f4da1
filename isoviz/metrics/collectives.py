"""One cloud from the parts of several processes, with gradients, so that batch statistics do not depend on how a batch is
split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def is_distributed() -> bool:
    """Whether this process holds its share of points that are split over several processes."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def own_share(count: int, device: torch.device) -> float | Tensor:
    """This process's number of points over the mean number. Weighted by it, the mean of the processes' means is the mean over
    all points."""
    if not is_distributed():
        return 1.0
    total = torch.tensor(float(count), device=device)
    dist.all_reduce(total)
    return count * dist.get_world_size() / total


def own_rows(draw: Callable[[int], Tensor], count: int, device: torch.device) -> Tensor:
    """This process's `count` rows of the values that `draw` returns, identically on every process, for the rows of all."""
    counts = _counts(count, device) if is_distributed() else [count]
    start = sum(counts[: dist.get_rank()]) if is_distributed() else 0
    return draw(sum(counts))[start : start + count]


def _counts(count: int, device: torch.device) -> list[int]:
    """The counts of all processes, in rank order."""
    counts = torch.zeros(dist.get_world_size(), dtype=torch.long, device=device)
    counts[dist.get_rank()] = count
    dist.all_reduce(counts)
    sizes: list[int] = counts.tolist()
    return sizes


def gathered(points: Tensor) -> Tensor:
    """The points (n_k, d) of all processes as one cloud (Σ n_k, d) in rank order, identical on every process.

    Differentiable: a process's points receive the sum of the gradients of all processes' losses, which distributed training
    then averages, as it averages the losses. A single process gets its own points back.
    """
    return _Gather.apply(points) if is_distributed() else points


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor) -> Tensor:
        rank = dist.get_rank()
        sizes = _counts(len(points), points.device)
        padded = points.new_zeros(max(sizes), points.shape[1])
        padded[: len(points)] = points
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        ctx.start, ctx.size = sum(sizes[:rank]), len(points)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total[ctx.start : ctx.start + ctx.size]
