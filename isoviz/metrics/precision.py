"""The number types in which tensors are computed."""

from __future__ import annotations

import torch
from torch import Tensor


def sum_dtype(device: torch.device) -> torch.dtype:
    """Apple's GPU has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def working_dtype(points: Tensor) -> torch.dtype:
    """float64 stays, float32 and the half precisions are float32, integers become float64."""
    if points.dtype == torch.float64:
        return torch.float64
    return torch.float32 if points.is_floating_point() else sum_dtype(points.device)
