"""Optimiser and schedule of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isoviz.config import RunConfig

if TYPE_CHECKING:
    from isoviz.models.adapter import HeadedModel


def make_optimizer(model: HeadedModel, config: RunConfig) -> torch.optim.AdamW:
    """AdamW over two groups of model parameters and the method's groups (`Method.parameter_groups`).

    The model's biases and normalisation weights (all one-dimensional parameters) have no weight decay. The model's groups come first,
    so that the scheduler's first learning rate is the run's.
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
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=fused)
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


def make_scheduler(optimizer: torch.optim.Optimizer, config: RunConfig, total_steps: int) -> Any:
    """Warm-up over `warmup_ratio` of the steps, then constant, linear or polynomial decay, of each group's own rate."""
    from transformers import get_scheduler

    name = {"constant": "constant_with_warmup", "linear": "linear", "polynomial": "polynomial"}[config.schedule]
    warmup = round(config.warmup_ratio * total_steps)
    return get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=total_steps)
