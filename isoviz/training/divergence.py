"""Non-finite loss terms and weights end the run, with their name and advice."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import nn

from isoviz.errors import DivergedError

_LOWER = "Try a lower learning rate or a longer warm-up."
VALIDATION = "validation"
"""The name of the mean task loss over the validation rows."""


def check(losses: Mapping[str, float], step: int, method: str) -> None:
    """Check that all loss terms are finite.

    Args:
        step: the optimiser step, from 1.
        method: title of the method, for the advice.

    Raises:
        DivergedError: the first non-finite term.
    """
    for name, value in losses.items():
        if not math.isfinite(value):
            advice = (
                _LOWER
                if name in ("task", "total", VALIDATION)
                else f"Try a weaker {method} (parameter nearer to 0) or a lower learning rate."
            )
            raise DivergedError(name, step, advice)


def check_weights(model: nn.Module, step: int) -> None:
    """Check that all weights and running statistics of a model are finite; arguments and error as for `check`."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            advice = _LOWER if step else "They are already in the checkpoint: use another one."
            raise DivergedError(name.removeprefix("network."), step, advice, what="the weights of")
