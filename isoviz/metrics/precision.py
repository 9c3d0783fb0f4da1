"""The number types in which tensors are computed."""

from __future__ import annotations

import torch
from torch import Tensor

from isoviz import devices


def sum_dtype(device: torch.device) -> torch.dtype:
    """float64, on devices that compute in it."""
    return torch.float64 if devices.has_float64(device.type) else torch.float32


def working_dtype(points: Tensor) -> torch.dtype:
    """float64 stays, float32 and the half precisions are float32, integers become float64."""
    if points.dtype == torch.float64:
        return torch.float64
    return torch.float32 if points.is_floating_point() else sum_dtype(points.device)
