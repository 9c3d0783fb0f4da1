"""A comparison as plain data: parts of arms, tests between them, and what was left out, with sentences to read."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["apart", "not apart", "too few seeds", "no spread"]
"""apart: p < α after Holm's correction; no spread: every seed differs by the same amount, so there is nothing to test."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Excluded(_Data):
    """A run that is in no number, and why."""

    run: str
    seed: int
    reason: str


class Arm(_Data):
    """Runs that share everything but the seed.

    Attributes:
        label: what distinguishes it from the other arms.
        is_baseline: the others are compared with it.
        values, runs: seed → its value, and the run it is from.
        mean, sd, median: of the values; `sd` with divisor n − 1, None below two.
        low, high: 95 % interval of the mean (Student's t).
        letters: arms of a part that share a letter do not differ significantly; "" with too few seeds.
        repeats: older runs of a seed that ran again, which are no independent draws.
    """

    label: str
    is_baseline: bool
    values: dict[int, float]
    runs: dict[int, str]
    mean: float | None
    sd: float | None
    median: float | None
    low: float | None
    high: float | None
    letters: str = ""
    excluded: list[Excluded] = []
    repeats: int = 0

    @property
    def n(self) -> int:
        """How many seeds are counted."""
        return len(self.values)


class Comparison(_Data):
    """One arm against the baseline.

    Attributes:
        difference: arm minus baseline: of the pairs if paired, else of the means.
        low, high: its 95 % interval, of this comparison alone.
        paired: by seed; then `n` pairs, and seeds without a partner are in `unpaired`. Else `n` of the arm, `n_baseline`.
        p, p_holm: of the t-test (paired, or Welch's), and corrected over all tests of the table.
        p_wilcoxon: of the signed-rank test beside it, from six pairs on; not corrected, and no verdict rests on it.
        g, g_low, g_high: Hedges' g, in standard deviations of the differences (paired) or of the values.
        seeds_needed: in each arm, to tell a true difference of this size with 80 % power; None where 10,000 are not enough.
        detectable: the smallest difference that the present seeds would detect with 80 % power.
        sentence: all of this in words.
    """

    arm: str
    baseline: str
    difference: float | None
    low: float | None = None
    high: float | None = None
    paired: bool
    n: int
    n_baseline: int
    unpaired: list[int] = []
    test: str = ""
    p: float | None = None
    p_holm: float | None = None
    p_wilcoxon: float | None = None
    g: float | None = None
    g_low: float | None = None
    g_high: float | None = None
    seeds_needed: int | None = None
    detectable: float | None = None
    verdict: Verdict
    sentence: str


class Part(_Data):
    """One model on one task.

    Attributes:
        metric: what is compared; `scale` is the value of perfect predictions, 0 for errors and where there is none.
        settings: what all runs of the part share.
        pairs_tested: how many pairs of arms the letters rest on; Holm's correction for them is over these.
        warnings: what speaks against comparing at all.
        notes: what a reader should know.
    """

    model: str
    task: str
    metric: str
    scale: float
    settings: dict[str, Any]
    arms: list[Arm]
    comparisons: list[Comparison]
    pairs_tested: int
    warnings: list[str] = []
    notes: list[str] = []


class Table(_Data):
    """Runs compared by one setting.

    Attributes:
        by: what is compared.
        tests: how many comparisons the correction is for.
    """

    by: str
    alpha: float
    tests: int
    parts: list[Part] = Field(default_factory=list)
