"""A comparison as plain data: parts, arms, tests and excluded runs, with sentences for the reader."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["apart", "not apart", "too few seeds", "no spread"]
""""apart": p < α after Holm's correction. "no spread": every seed differs by the same amount, so there is nothing to test."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Excluded(_Data):
    """An excluded run and the reason."""

    run: str
    seed: int
    reason: str


class Arm(_Data):
    """Runs that differ only in the seed.

    Attributes:
        label: distinguishes it from the other arms.
        is_baseline: whether the others are compared with it.
        values, runs: seed → its value, and the id of its run.
        mean, sd, median: of the values; `sd` has divisor n − 1 and is None below two values.
        low, high: 95 % interval of the mean (Student's t).
        repeats: older runs of repeated seeds, which are not independent draws.
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
    excluded: list[Excluded] = []
    repeats: int = 0

    @property
    def n(self) -> int:
        """The number of seeds that count."""
        return len(self.values)


class Comparison(_Data):
    """One arm compared with the baseline.

    Attributes:
        difference: arm minus baseline: the mean over pairs if paired, else the difference of the means.
        low, high: its 95 % interval, not corrected for other comparisons.
        paired: whether seeds are paired; then `n` counts pairs, and `unpaired` lists seeds without a partner. Otherwise `n`
            counts the arm's seeds and `n_baseline` the baseline's.
        p, p_holm: of the t-test (paired or Welch's), uncorrected and corrected over all tests of the table.
        p_wilcoxon: of the signed-rank test, from six pairs on; not corrected and not used for the verdict.
        g, g_low, g_high: Hedges' g, in standard deviations of the differences (paired) or of the values.
        seeds_needed: seeds in each arm to detect a true difference of this size with 80 % power; None if 10,000 are not enough.
        detectable: the smallest difference that the current seeds would detect with 80 % power.
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
        metric: the compared metric; `scale` is its value for perfect predictions, 0 for errors and unbounded metrics.
        settings: shared by all runs of the part.
        warnings: reasons against comparing these runs at all.
        notes: caveats.
    """

    model: str
    task: str
    metric: str
    scale: float
    settings: dict[str, Any]
    arms: list[Arm]
    comparisons: list[Comparison]
    warnings: list[str] = []
    notes: list[str] = []


class Table(_Data):
    """Runs compared by one setting.

    Attributes:
        by: the compared setting.
        tests: number of comparisons in the correction.
    """

    by: str
    alpha: float
    tests: int
    parts: list[Part] = Field(default_factory=list)
