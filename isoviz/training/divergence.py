"""A loss term or a weight that is no number any more ends the run, with its name and what to try."""

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
    """Whether all terms are finite.

    Args:
        step: the optimiser step they are of, from 1.
        method: its title, for the advice.

    Raises:
        DivergedError: for the first that is not.
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
    """Whether all weights and running statistics of a model are finite; arguments and error as for `check`."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            advice = _LOWER if step else "They were so in the checkpoint: use another one."
            raise DivergedError(name.removeprefix("network."), step, advice, what="the weights of")
