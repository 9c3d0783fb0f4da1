"""Sentences on the effect of a chain. No Streamlit here."""

from __future__ import annotations

import math

from dashboard import wording
from isoviz.readouts import Comparison
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.statistics.resolution import smallest_difference
from isoviz.whatif.engine import Answer, Full
from isoviz.whatif.vectors import Answer as VectorsAnswer

_SAME = 0.005
"""IsoScores closer than this count as unchanged."""

_CLOUD_TEXTS = {"head": "input of the output layer", "pooled": "before the run's method"}


def isotropy(before: Answer | VectorsAnswer, after: Answer | VectorsAnswer) -> str:
    """A sentence on IsoScore of the same rows before and after."""
    first, second = before.measures["isoscore"], after.measures["isoscore"]
    if first is None or second is None:
        return "IsoScore is undefined here, so there is nothing to compare."
    change = second - first
    text = f"IsoScore {wording.number(first, 3)} → {wording.number(second, 3)}"
    if abs(change) < _SAME:
        return f"The cloud stays about as isotropic ({text})."
    return f"The cloud becomes {'more' if change > 0 else 'less'} isotropic ({text})."


def heads(answer: Answer, full: Full) -> str:
    """A sentence on both heads: whether the transform helps, hurts, or only breaks the fit of the frozen head."""
    frozen, refitted = full.frozen_difference, full.refitted_difference
    if refitted is None or refitted.low is None:
        return "The metric is undefined for one of the heads, so they cannot be compared."
    if frozen is None or frozen.low is None:
        return "The frozen head cannot read these vectors. " + _refitted_only(refitted)
    n = answer.n
    if frozen.low == frozen.high == refitted.low == refitted.high == 0:
        return f"Neither head is affected: on these {n:,} rows, both score exactly as without the transform."
    if not frozen.excludes_zero and not refitted.excludes_zero:
        return f"Neither head changes by more than chance would on {n:,} rows. This is no evidence for or against the transform."
    if frozen.excludes_zero and (frozen.value or 0) < 0 and not (refitted.excludes_zero and (refitted.value or 0) < 0):
        better = " (even better)" if refitted.excludes_zero else ""
        return (
            "The frozen head no longer fits, because it was trained on the old coordinates. The information is still there: a head "
            f"refitted on the training rows does as well as before{better}."
        )
    if refitted.excludes_zero and (refitted.value or 0) < 0:
        harder = "The information that the task needs has become harder to read"
        if frozen.excludes_zero and (frozen.value or 0) < 0:
            return f"{harder}: the frozen head does worse, and so does one refitted on the training rows."
        return (
            f"{harder} for a head refitted on the training rows, which does worse; the frozen head "
            "loses no more than chance explains."
        )
    if refitted.excludes_zero:
        return "A head refitted on the training rows does better than one refitted without the transform: here, the transform helps."
    return "The frozen head does better, but a refitted head does not: the transform suits the old head without adding information."


def cloud(name: str) -> str:
    """Name and description of a cloud."""
    return f"{name.capitalize()} cloud ({_CLOUD_TEXTS.get(name, _CLOUD_TEXTS['pooled'])})"


def _refitted_only(refitted: Difference) -> str:
    if not refitted.excludes_zero:
        return "On these rows, a head refitted on the training rows does as well as before."
    direction = "better" if (refitted.value or 0) > 0 else "worse"
    return f"A head refitted on the training rows does {direction} than one refitted without the transform."


def difference(interval: Difference | None) -> str:
    """A difference with its interval."""
    if interval is None or interval.value is None:
        return "no difference: one of the two is undefined"
    if interval.low is None or interval.high is None:
        return f"{signed(interval.value)}, no interval"
    if interval.low == interval.high == 0:
        return f"{signed(interval.value)} (the same in every resample, n = {wording.number(interval.n)})"
    ends = " to ".join("0" if round(end, 6) == 0 else signed(end) for end in (interval.low, interval.high))
    return f"{signed(interval.value)} (95 % interval {ends}, paired bootstrap, n = {wording.number(interval.n)})"


def readout(comparison: Comparison) -> str:
    """A read-out before and after, with its interval and verdict."""
    numbers = f"{wording.number(comparison.before, 3)} → {wording.number(comparison.after, 3)}"
    return f"{comparison.readout.title} {numbers}, {difference(comparison.difference)}. {comparison.verdict}"


def crossed(comparison: Comparison) -> str:
    """A cross-validated read-out of a small set, and the smallest difference its rows can show."""
    smallest = smallest_difference(comparison.difference.n)
    limit = (
        "These are too few rows to show any difference."
        if smallest is None
        else f"The smallest difference that {comparison.difference.n:,} rows can show is {wording.number(smallest, 2)}."
    )
    return f"Cross-validated over all {comparison.difference.n:,} labelled rows: {readout(comparison)} {limit}"


def change(value: float, before: float) -> str:
    """A tile's change, rounded like the two displayed values (three digits)."""
    largest = max(abs(value), abs(before))
    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest else 3
    text = f"{value - before:+.{decimals}f}"
    return (text if float(text) else f"{value - before:+.1g}").replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """`+0.012`, `−0.300`, `±0`."""
    return "±0" if round(value, 6) == 0 else ("+" if value > 0 else "−") + f"{abs(value):.{digits}f}"
