"""The quick scale: the embedded default, at a size where something is learned and two cores are enough."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from isoviz.runs.planning import MethodChoice
from isoviz.studies.grids import Plan

ENCODER: Final = "demo/tiny-bert"
WRITER: Final = "demo/tiny-bart"
SEEDS: Final = (0, 1, 2)
"""As few as a verdict needs."""

ROWS: Final = MappingProxyType({"demo/acceptability": 1000, "demo/similarity": 1500, "demo/paraphrase": 2000})
"""Training rows of a run: as few as its baseline needs to beat bag of words clearly."""
QUICK: Final = MappingProxyType[str, Any]({"epochs": 3, "max_length": 48, "batching": "shuffled"})
"""Further settings: the batches are shuffled as in the papers. All studies have the same ones, so that they can share a run."""


def plans(methods: Sequence[MethodChoice], *tasks: str) -> tuple[Plan, ...]:
    """The bundled encoder on tasks of `ROWS`."""
    return tuple(
        Plan((ENCODER,), (task,), tuple(methods), SEEDS, None, {**QUICK, "max_train": ROWS[task]}) for task in tasks
    )
