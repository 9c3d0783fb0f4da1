"""Optimiser and schedule of a run."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from isoviz.config import RunConfig


def make_optimizer(model: nn.Module, config: RunConfig) -> torch.optim.AdamW:
    """AdamW; no weight decay on biases and normalisation weights (all one-dimensional parameters)."""
    decayed = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    plain = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=fused)


def make_scheduler(optimizer: torch.optim.Optimizer, config: RunConfig, total_steps: int) -> Any:
    """Warm-up over `warmup_ratio` of the steps, then constant, linear or polynomial decay."""
    from transformers import get_scheduler

    name = {"constant": "constant_with_warmup", "linear": "linear", "polynomial": "polynomial"}[config.schedule]
    warmup = round(config.warmup_ratio * total_steps)
    return get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=total_steps)
