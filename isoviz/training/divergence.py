"""A loss term that is no number any more ends the run, with its name and what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping

from isoviz.errors import DivergedError


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
                "Try a lower learning rate or a longer warm-up."
                if name in ("task", "total")
                else f"Try a weaker {method} (parameter nearer to 0) or a lower learning rate."
            )
            raise DivergedError(name, step, advice)
