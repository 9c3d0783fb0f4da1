"""The quick scale: the embedded default, at a size where something is learned and two cores are enough."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

ENCODER: Final = "demo/tiny-bert"
WRITER: Final = "demo/tiny-bart"
SEEDS: Final = (0, 1, 2)
"""As few as a verdict needs."""

QUICK: Final = MappingProxyType[str, Any]({"epochs": 3, "max_train": 1000, "max_length": 48, "batching": "shuffled"})
"""Settings of runs on the encoder's tasks: the batches are shuffled as in the papers, so every study can share a run."""
