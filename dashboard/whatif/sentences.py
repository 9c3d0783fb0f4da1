"""Sentences on the effect of a chain. No Streamlit here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.shared import wording
from isoviz.formatting import sentence
from isoviz.metrics.dimensions import dead_words
from isoviz.metrics.directions import NOISE, indistinct
from isoviz.readouts import Comparison
from isoviz.readouts.isotropy import sentence as comparison_of
from isoviz.readouts.reading import Annotations, Needs
from isoviz.statistics.paired_bootstrap import Difference, Outcome
from isoviz.statistics.power import smallest_difference
from isoviz.whatif.chains import Step
from isoviz.whatif.engine import Answer, Full


@dataclass(frozen=True)
class Purpose:
    """A use of vectors that a transform may help or harm.

    Attributes:
        needs: the annotations that it is judged by; `missing` names them on screen.
        readouts: slugs. The first decides, unless another changes significantly in the opposite direction.
    """

    title: str
    needs: Needs
    missing: str
    readouts: tuple[str, ...]


PURPOSES = (
    Purpose("Classifier", "labels", "labels", ("knn", "probe")),
    Purpose("Search", "queries", "queries", ("ndcg_cosine", "recall10_cosine")),
    Purpose("Similarity", "pairs", "scored pairs", ("spearman_cosine",)),
)

_CLOUD_TEXTS = {"head": "input of the output layer", "pooled": "before the run's method"}


def isotropy(before: Answer, after: Answer) -> str:
    """A sentence on IsoScore of the same rows before and after, or on why it says nothing."""
    if after.only_rounding:
        return "The training rows no longer vary in any direction, so these numbers are meaningless."
    cosine = before.measures["mean_cosine"]
    if cosine is not None and 1 - cosine < NOISE:
        return f"Before the transforms, {indistinct(cosine)}, so more isotropy says nothing here."
    if after.simplex:
        return next(sentence(note) for note in reversed(after.notes) if "same cosine" in note)
    return comparison_of(before.isotropy, after.isotropy)


def caveats(start: Answer, answer: Answer) -> list[str]:
    """What the transforms dropped, dead dimensions, and numbers that these rows cannot give."""
    texts = list(filter(None, [indistinct(start.measures["mean_cosine"])]))
    if start.dead or answer.dead:
        after = "after the transforms as before" if list(start.dead) == list(answer.dead) else "after the transforms"
        texts = [
            f"{dead_words(answer.dead)} {after}" if answer.dead else f"{dead_words(start.dead)} before the transforms"
        ]
    texts += [f"IsoScore, unbiased: {reason}" for slug, reason in answer.reasons.items() if slug == "isoscore_unbiased"]
    return [sentence(text) for text in (*answer.notes, *texts)]


def heads(n: int, full: Full) -> str:
    """Whether the transform helps, hurts, or only breaks the fit of the frozen head on n rows, and what the intervals leave out."""
    outcomes = full.difference("frozen").outcome, full.difference("refitted").outcome
    sentence = _heads(n, *outcomes)
    differ = not {"higher", "lower"}.isdisjoint(outcomes)
    return f"{sentence} The intervals do not cover another fit of the transform or of the head." if differ else sentence


def _heads(n: int, frozen: Outcome, refitted: Outcome) -> str:
    if refitted == "undefined":
        return "The metric is undefined for one of the heads, so they cannot be compared."
    if "no interval" in (frozen, refitted):
        return f"{n:,} validation rows are too few for intervals, so the heads cannot be compared."
    if frozen == "undefined":
        known = {
            "higher": "better than one refitted without the transform",
            "lower": "worse than one refitted without the transform",
        }
        does = known.get(refitted, "as well as before")
        return f"The frozen head cannot read these vectors. On these rows, a head refitted on the training rows does {does}."
    if frozen == refitted == "same":
        return f"Neither head is affected: on these {n:,} rows, both score exactly as without the transform."
    if {frozen, refitted} <= {"same", "unclear"}:
        return f"Neither head changes by more than chance would on {n:,} rows. This is no evidence for or against the transform."
    if frozen == "lower" and refitted != "lower":
        better = " (even better)" if refitted == "higher" else ""
        return (
            "The frozen head no longer fits, because it was trained on the old coordinates. The information is still there: a head "
            f"refitted on the training rows does as well as before{better}."
        )
    if refitted == "lower":
        harder = "The information that the task needs has become harder to read"
        if frozen == "lower":
            return f"{harder}: the frozen head does worse, and so does one refitted on the training rows."
        return (
            f"{harder} for a head refitted on the training rows, which does worse; the frozen head "
            "loses no more than chance explains."
        )
    if refitted == "higher":
        return "A head refitted on the training rows does better than one refitted without the transform: here, the transform helps."
    return "The frozen head does better, but a refitted head does not: the transform suits the old head without adding information."


def cloud(name: str) -> str:
    """Name and description of a cloud."""
    return f"{name.capitalize()} cloud ({_CLOUD_TEXTS.get(name, _CLOUD_TEXTS['pooled'])})"


def difference(interval: Difference) -> str:
    """A difference with its interval."""
    if interval.value is None:
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


def judged_by(annotations: Annotations) -> str:
    """Which of the set's relations the main read-out answers; empty if it has none."""
    first, *others = [
        purpose.missing for need in annotations.needs for purpose in PURPOSES if purpose.needs == need
    ] or [""]
    below = f", with {' and '.join(others)} in the table below" if others else ""
    return f"Judged by {first}{below}." if first else ""


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


def verdict(purpose: Purpose, comparisons: Mapping[str, Comparison], steps: Sequence[Step]) -> tuple[str, str]:
    """The advice for a purpose ("do not whiten"), and the changes that it rests on.

    The advice is "cannot tell" unless the interval of the purpose's first read-out excludes 0 and no other read-out contradicts it.

    Args:
        comparisons: read-outs of the chain against no transform, by slug.
    """
    first, *others = [comparisons[slug] for slug in purpose.readouts if slug in comparisons]
    differing = [other for other in others if other.gain not in (0, first.gain)]
    reason = "; ".join(map(change_in_points, [first, *differing])) + "."
    if first.difference.outcome == "same":
        return "no difference", reason
    if not first.gain or differing:
        return "cannot tell", reason
    return (_verb(steps) if first.gain > 0 else f"do not {_verb(steps)}"), reason


def held_back(
    purpose: Purpose, shown: str, comparisons: Mapping[str, Comparison], steps: Sequence[Step]
) -> tuple[str, str]:
    """`verdict` of the held-back rows; its reason names them, and the advice on the rows shown if that was another one.

    Args:
        shown: the advice on the rows shown.
    """
    first = comparisons.get(purpose.readouts[0])
    if first is None:
        return "cannot tell", f"The held-back rows have too few {purpose.missing}."
    advice, reason = verdict(purpose, comparisons, steps)
    differs = "" if advice == shown else f" The rows shown gave another verdict: {shown}."
    return advice, f"{first.difference.n:,} held-back {first.readout.unit}: {reason}{differs}"


def change_in_points(comparison: Comparison) -> str:
    """`k-NN accuracy loses 3.6 points (−6.0 to −1.1)`."""
    change, title, units = comparison.difference, comparison.readout.title, comparison.readout.unit
    if change.value is None:
        return f"{title} is undefined on these {units}"
    if change.low is None or change.high is None:
        return f"Too few {units} for an interval of {title}"
    if change.low == change.high == 0:
        return f"{title} is the same in every resample"
    low, high = signed(100 * change.low, 1), signed(100 * change.high, 1)
    if not change.excludes_zero:
        return f"{title} changes by {signed(100 * change.value, 1)} points ({low} to {high})"
    return f"{title} {'gains' if change.low > 0 else 'loses'} {abs(100 * change.value):.1f} points ({low} to {high})"


def _verb(steps: Sequence[Step]) -> str:
    """The chain as a verb: `whiten`, `centre`, `apply this transform`."""
    strengths = [getattr(step.params, "strength", None) for step in steps if step.slug in ("zca", "pca_whitening")]
    if len(strengths) == len(steps) and any(strengths):
        return "whiten"
    if len(strengths) == len(steps) and all(step.slug == "zca" for step in steps):
        return "centre"
    return "apply this transform" if len(steps) == 1 else "apply this chain"
