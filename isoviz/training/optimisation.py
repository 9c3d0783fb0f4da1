"""Optimiser and schedule of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from isoviz import devices
from isoviz.config import RunConfig

if TYPE_CHECKING:
    from isoviz.models.adapter import HeadedModel

_MOMENTS: Final = ("exp_avg", "exp_avg_sq")
_LAST_RATE: Final = 1e-7


def make_optimizer(model: HeadedModel, config: RunConfig, table: nn.Embedding | None = None) -> torch.optim.AdamW:
    """AdamW over two groups of model parameters and the method's groups (`Method.parameter_groups`).

    The model's biases and normalisation weights (all one-dimensional parameters) have no weight decay. The model's groups come first,
    so that the scheduler's first learning rate is the run's.

    Args:
        table: the model's token table, if it may be updated row by row (`step_rows_read`); this is faster on a CPU.
    """
    method_groups = [dict(group) for group in model.hooks.parameter_groups()]
    grouped = {id(parameter) for group in method_groups for parameter in group["params"]}
    model_parameters = [p for p in model.parameters() if p.requires_grad and id(p) not in grouped]
    decayed = [p for p in model_parameters if p.ndim > 1]
    without_decay = [p for p in model_parameters if p.ndim <= 1]
    limits = [(group["params"], group.pop("clip")) for group in method_groups if "clip" in group]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": without_decay, "weight_decay": 0.0},
        *method_groups,
    ]
    fused = next(model.parameters()).device.type in devices.FUSED
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=fused)
    if table is not None and table.weight.device.type == "cpu" and table.weight.requires_grad:
        step_rows_read(optimizer, table)
    for parameters, norm in limits:
        clip_before_step(optimizer, parameters, norm)
    return optimizer


def clip_before_step(optimizer: torch.optim.Optimizer, parameters: list[Tensor], norm: float) -> None:
    """Clip the gradients of these parameters to a total norm before every optimiser step.

    An optimiser hook sees the gradients that the step uses: accumulated over all parts of a batch and, in half precision, unscaled. A
    fused optimiser unscales inside its kernel, so the limit is scaled instead.
    """

    def clip(stepping: torch.optim.Optimizer, *_: Any) -> None:
        scale = getattr(stepping, "grad_scale", None)
        torch.nn.utils.clip_grad_norm_(parameters, norm if scale is None else norm * float(scale))

    optimizer.register_step_pre_hook(clip)


def step_rows_read(optimizer: torch.optim.AdamW, table: nn.Embedding) -> None:
    """Let AdamW step only those rows of a token table (vocabulary, d) that have had a gradient; all others only decay.

    The moments of the others are zero, so the result is that of dense gradients. These would write and read the whole table several
    times per step, which takes a sixth of a step of a small encoder on a CPU, and more than half of a multilingual one's. Other
    gradients of the same weights make them dense for the whole run.
    """
    weight = table.weight
    table.sparse = True
    read: Tensor | None = None  # (vocabulary,) bool: rows that have had a gradient

    @torch.no_grad()
    def step(stepping: torch.optim.Optimizer, *_: Any) -> None:
        nonlocal read
        gradient, weight.grad = weight.grad, None
        if gradient is None or not gradient.is_sparse:
            weight.grad = gradient
            return
        state = stepping.state[weight]
        if not state:
            state |= {"step": torch.zeros(()), **{name: torch.zeros_like(weight) for name in _MOMENTS}}
        if read is None:  # also after a resume
            read = state["exp_avg"].any(dim=1) | state["exp_avg_sq"].any(dim=1)
        tokens, values = gradient._indices()[0], gradient._values()
        read[tokens[values.any(dim=1)]] = True
        rows = read.nonzero().squeeze(1)
        (group,) = (group for group in stepping.param_groups if any(p is weight for p in group["params"]))
        place = read.cumsum(0).sub_(1).clamp_(min=0)
        compact = values.new_zeros(len(rows), weight.shape[1]).index_add_(0, place[tokens], values)
        weights, means, squares = weight[rows], *(state[name][rows] for name in _MOMENTS)
        beta1, beta2 = group["betas"]
        adamw(
            [weights], [compact], [means], [squares], [], [state["step"]], fused=True, amsgrad=False, maximize=False,
            lr=group["lr"], beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=group["weight_decay"],
        )  # fmt: skip
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        for whole, part in zip((weight, *(state[name] for name in _MOMENTS)), (weights, means, squares), strict=True):
            whole[rows] = part

    optimizer.register_step_pre_hook(step)


def make_scheduler(
    optimizer: torch.optim.Optimizer, config: RunConfig, total_steps: int
) -> torch.optim.lr_scheduler.LambdaLR:
    """Warm-up over `warmup_ratio` of the steps, then constant, linear or polynomial decay, of each group's own rate.

    These are transformers' schedules, whose module takes a second to import. The polynomial one has power 1 and ends at `_LAST_RATE`.
    """
    warmup = round(config.warmup_ratio * total_steps)

    def share(step: int) -> float:
        if step < warmup:
            return step / warmup
        if config.schedule == "constant":
            return 1.0
        left = max(0.0, (total_steps - step) / max(1, total_steps - warmup))
        last = _LAST_RATE / config.learning_rate if config.schedule == "polynomial" else 0.0
        return (1 - last) * left + last

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)
