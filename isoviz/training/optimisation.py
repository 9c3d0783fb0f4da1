"""Optimiser and schedule of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoviz.config import RunConfig

if TYPE_CHECKING:
    from isoviz.models.adapter import HeadedModel


def make_optimizer(model: HeadedModel, config: RunConfig) -> torch.optim.AdamW:
    """AdamW over the method's own groups (`Method.parameter_groups`) and, in two groups, everything else that trains.

    No weight decay on biases and normalisation weights (all one-dimensional parameters) of those two. They come first, so
    that the scheduler's first learning rate is the run's.
    """
    own = [dict(group) for group in model.hooks.parameter_groups()]
    grouped = {id(parameter) for group in own for parameter in group["params"]}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in grouped]
    decayed = [p for p in rest if p.ndim > 1]
    plain = [p for p in rest if p.ndim <= 1]
    limits = [(group["params"], group.pop("clip")) for group in own if "clip" in group]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}, *own]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=fused)
    for parameters, norm in limits:
        clip_before_step(optimizer, parameters, norm)
    return optimizer


def clip_before_step(optimizer: torch.optim.Optimizer, parameters: list[Tensor], norm: float) -> None:
    """Cut the gradients of these parameters to a total norm before every step of the optimiser.

    A hook of the optimiser sees what a step really uses: gradients accumulated over all parts of a batch, and unscaled in
    half precision. A fused optimiser unscales inside its kernel: then the limit is scaled instead.
    """

    def clip(stepping: torch.optim.Optimizer, *_: Any) -> None:
        scale = getattr(stepping, "grad_scale", None)
        torch.nn.utils.clip_grad_norm_(parameters, norm if scale is None else norm * float(scale))

    optimizer.register_step_pre_hook(clip)


def make_scheduler(optimizer: torch.optim.Optimizer, config: RunConfig, total_steps: int) -> Any:
    """Warm-up over `warmup_ratio` of the steps, then constant, linear or polynomial decay, of each group's own rate."""
    from transformers import get_scheduler

    name = {"constant": "constant_with_warmup", "linear": "linear", "polynomial": "polynomial"}[config.schedule]
    warmup = round(config.warmup_ratio * total_steps)
    return get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=total_steps)
