"""Do predictions agree with the labels better than guesses would? Light: lists of runs ask it too."""

from __future__ import annotations

import math

ROWS_TO_JUDGE_CHANCE = 100
"""On fewer validation rows a useful model may look like guessing."""
ABOVE_CHANCE = 1.645
"""Standard errors (one-sided 5 %) by which predictions must agree with the labels."""
AT_CHANCE = "does no better than chance"
CORRELATIONS = ("matthews", "pearson", "spearman")
"""Metrics by which some kind of head judges chance (`isoviz.tasks.kinds.Kind.correlation`); the first that a run has counts."""


def at_chance(correlation: float | None, rows: int) -> bool:
    """Whether predictions agree with the labels no more than guesses would.

    Without any agreement the correlation has a standard error of 1/√rows (of two classes; less of more).

    Args:
        correlation: Matthews' of classes, Pearson's of numbers; False where it is undefined.
        rows: of the validation split; False for fewer than `ROWS_TO_JUDGE_CHANCE`.
    """
    if correlation is None or rows < ROWS_TO_JUDGE_CHANCE:
        return False
    return correlation * math.sqrt(rows) < ABOVE_CHANCE
