"""A method by its slug on a model that is no more than its sizes, and batches of pooled vectors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from isoviz.methods import get
from isoviz.methods.protocol import Method


def attached(slug: str, width: int = 5, output: Any = None, **params: Any) -> Method:
    """The method with these parameters, for `width` dimensions, three layers and an output layer with the weight `output`."""
    kind = get(slug)
    method = kind(kind.Params(**params))
    layer = SimpleNamespace(weight=output)
    method.attach(SimpleNamespace(width=width, head_width=width, num_layers=3, output=layer))  # type: ignore[arg-type]
    return method


def reps(points: Any) -> Any:
    """What the hooks see of pooled vectors (n, h)."""
    return SimpleNamespace(
        pooled=torch.as_tensor(points, dtype=torch.float32) if isinstance(points, np.ndarray) else points
    )
