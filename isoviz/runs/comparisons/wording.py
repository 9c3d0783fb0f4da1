"""Comparisons in words. "Not enough seeds to tell" is a valid result; "not shown" does not mean "equal"."""

from __future__ import annotations

from collections.abc import Sequence

from isoviz import formatting
from isoviz.runs.comparisons.table import Comparison

ENOUGH = 3
"""Minimum number of seeds for a verdict."""
RECOMMENDED = 5


def number(value: float | None, *, scale: float = 1.0, sign: bool = False) -> str:
    """A value or difference: three decimals, or two if the metric goes up to 100; two digits where these would all be zero."""
    if value is not None and 1e-9 < abs(value) < 0.0005 and scale < 100:
        return "+" * (sign and value > 0) + formatting.number(value, 2)
    return formatting.decimals(value, 2 if scale >= 100 else 3, sign=sign)


def probability(p: float | None) -> str:
    """`0.043`, `< 0.001`, `undefined`."""
    if p is None:
        return "undefined"
    return "< 0.001" if p < 0.001 else f"{p:.2g}" if p >= 0.1 else f"{p:.3f}"


def equals(p: float | None) -> str:
    """`= 0.043`, `< 0.001`."""
    text = probability(p)
    return text if text.startswith("<") else f"= {text}"


def interval(ends: Sequence[float | None] | None, scale: float = 1.0) -> str:
    """` [−0.020, 0.010]`; "" without ends."""
    if ends is None or ends[0] is None:
        return ""
    return f" [{number(ends[0], scale=scale)}, {number(ends[1], scale=scale)}]"


def sentence(comparison: Comparison, tests: int, scale: float = 1.0) -> str:
    """`IsoBN β = 0.5 − Baseline: −0.006 [−0.020, 0.010], 5 paired seeds: difference not shown (p = 0.41). …`

    Args:
        tests: number of comparisons in the correction.
        scale: the metric's value for perfect predictions.
    """
    return f"{_difference(comparison, scale)}: {_verdict(comparison, tests, scale)}"


def _difference(comparison: Comparison, scale: float) -> str:
    if comparison.difference is None:
        return f"{comparison.arm} − {comparison.baseline}"
    size = number(comparison.difference, scale=scale, sign=True)
    size += interval((comparison.low, comparison.high), scale)
    seeds = (
        f"{comparison.n:,} paired seed{'' if comparison.n == 1 else 's'}"
        if comparison.paired
        else f"{comparison.n} and {comparison.n_baseline} unpaired seeds"
    )
    return f"{comparison.arm} − {comparison.baseline}: {size}, {seeds}"


def _verdict(comparison: Comparison, tests: int, scale: float) -> str:
    if comparison.difference is None:
        return "no difference to report, because the two have no usable seed in common. See the excluded runs."
    corrected = tests > 1
    over = f" after Holm's correction for {tests} comparisons" if corrected else ""
    match comparison.verdict:
        case "too few seeds":
            units = "pairs" if comparison.paired else "seeds of each"
            return f"not enough seeds to tell. Use at least {ENOUGH} {units}, preferably {RECOMMENDED}."
        case "no spread":
            unchanged = not comparison.difference
            return (
                "the same in every seed."
                if unchanged
                else "the same difference in every seed, so there is no spread to test."
            )
        case "apart":
            return f"a significant difference (p {equals(comparison.p_holm)}{over})."
    low, high = comparison.low, comparison.high
    if corrected and low is not None and high is not None and not low <= 0 <= high:
        reason = f"p {equals(comparison.p)} uncorrected, {probability(comparison.p_holm)}{over}"
    else:
        reason = f"p {equals(comparison.p_holm)}{over}"
    return (
        f"difference not shown ({reason}). {_seeds(comparison)} would show a true difference of this size. The present seeds would "
        f"likely show one of {number(comparison.detectable, scale=scale)}."
    )


def answer(comparison: Comparison) -> str:
    """Whether the two differ, for a table's cell: `yes`, `not shown; about 7 seeds would show it`, …"""
    seeds = _seeds(comparison)
    answers = {"apart": "yes", "too few seeds": "not enough seeds to tell", "no spread": "no spread to test"}
    return answers.get(comparison.verdict, f"not shown; {seeds[:1].lower()}{seeds[1:]} would show it")


def _seeds(comparison: Comparison) -> str:
    """The seeds that would show a true difference of the observed size, at the start of a sentence; rounded to two digits above 100."""
    seeds = comparison.seeds_needed
    if seeds is None:
        return "No affordable number of seeds"
    rounded = seeds if seeds <= 100 else int(float(f"{seeds:.1e}"))
    return f"About {rounded:,} seeds{'' if comparison.paired else ' of each'}"
