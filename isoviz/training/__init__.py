"""The training loop, directly on accelerate, and its measurements. `train` is imported on first use, because it imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoviz.training.loop import train

__all__ = ["train"]


def __getattr__(name: str) -> object:
    if name == "train":
        from isoviz.training.loop import train

        return train
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
