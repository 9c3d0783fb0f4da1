"""Comparisons in words. "Not enough seeds to tell" is a valid result; "no significant difference" does not mean "equal"."""

from __future__ import annotations

from isoviz.comparisons.table import Comparison

ENOUGH = 3
"""Minimum number of seeds for a verdict."""
RECOMMENDED = 5


def number(value: float | None, *, scale: float = 1.0, sign: bool = False) -> str:
    """A value or difference with a true minus sign: three decimals, or two if the metric goes up to 100."""
    if value is None:
        return "undefined"
    text = f"{value:{'+' if sign else ''}z.{2 if scale >= 100 else 3}f}"
    return text.replace("-", "−")


def probability(p: float | None) -> str:
    """`0.043`, `< 0.001`, `undefined`."""
    if p is None:
        return "undefined"
    return "< 0.001" if p < 0.001 else f"{p:.2g}" if p >= 0.1 else f"{p:.3f}"


def _equals(p: float | None) -> str:
    text = probability(p)
    return text if text.startswith("<") else f"= {text}"


def sentence(comparison: Comparison, tests: int, scale: float = 1.0) -> str:
    """`IsoBN β = 0.5 − Baseline: −0.006 [−0.020, 0.010], 5 paired seeds: no significant difference (p = 0.41). …`

    Args:
        tests: number of comparisons in the correction.
        scale: the metric's value for perfect predictions.
    """
    return f"{_difference(comparison, scale)}: {_verdict(comparison, tests, scale)}"


def _difference(comparison: Comparison, scale: float) -> str:
    if comparison.difference is None:
        return f"{comparison.arm} − {comparison.baseline}"
    size = number(comparison.difference, scale=scale, sign=True)
    if comparison.low is not None:
        size += f" [{number(comparison.low, scale=scale)}, {number(comparison.high, scale=scale)}]"
    seeds = (
        _count(comparison.n, "paired seed")
        if comparison.paired
        else f"{comparison.n} and {comparison.n_baseline} unpaired seeds"
    )
    return f"{comparison.arm} − {comparison.baseline}: {size}, {seeds}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


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
            return f"a significant difference (p {_equals(comparison.p_holm)}{over})."
    alone = (
        comparison.p is not None
        and comparison.p_holm is not None
        and comparison.low is not None
        and comparison.high is not None
    )
    if corrected and alone and not comparison.low <= 0 <= comparison.high:  # type: ignore[operator]
        reason = f"p {_equals(comparison.p)} uncorrected, {probability(comparison.p_holm)}{over}"
    else:
        reason = f"p {_equals(comparison.p_holm)}{over}"
    return f"no significant difference ({reason}). {_seeds(comparison, scale)}"


def _seeds(comparison: Comparison, scale: float) -> str:
    if comparison.seeds_needed is None:
        needed = "No affordable number of seeds would detect a true difference of this size."
    else:
        units = "seeds" if comparison.paired else "seeds of each"
        needed = f"Detecting a true difference of this size takes about {about(comparison.seeds_needed):,} {units}."
    if comparison.detectable is None:
        return needed
    return f"{needed} The present seeds would likely detect one of {number(comparison.detectable, scale=scale)}."


def about(seeds: int) -> int:
    """Rounded to two digits; exact up to 100."""
    return seeds if seeds <= 100 else int(float(f"{seeds:.1e}"))
