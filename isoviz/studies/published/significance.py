"""Isotropy calibration's stars, from its printed means, deviations and three seeds: its own test, Welch's, and either corrected.

The paper stars a calibrated model where a two-sided t-test with equal variances against the uncalibrated one gives p < 0.05. It tests
every cell of its Table 1 and corrects for none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from isoviz.statistics import correction, two_samples
from isoviz.studies.published import Printed, of


@dataclass(frozen=True)
class Star:
    """One calibrated model against the uncalibrated one on one task.

    Attributes:
        cell, against: the two printed cells.
        starred: the paper marks it as significantly better.
        student, welch: p of the test with and without equal variances; None where neither sample has a printed spread.
        student_holm, welch_holm: corrected over all comparisons of the table.
    """

    cell: Printed
    against: Printed
    starred: bool
    student: float | None
    welch: float | None
    student_holm: float | None
    welch_holm: float | None

    @property
    def difference(self) -> float:
        """In the paper's percent."""
        assert self.cell.value is not None and self.against.value is not None
        return self.cell.value - self.against.value


def calibration_table_1() -> list[Star]:
    """Every comparison of Table 1 that its print allows, in its order."""
    cells = of("calibration", "Table 1")
    baselines = {(cell.model, cell.task, cell.metric): cell for cell in cells if cell.method == "baseline"}
    pairs = [
        (cell, baselines[cell.model, cell.task, cell.metric])
        for cell in cells
        if cell.method != "baseline" and cell.value is not None
    ]
    student = [_p(cell, base, equal_variances=True) for cell, base in pairs]
    welch = [_p(cell, base, equal_variances=False) for cell, base in pairs]
    columns = [student, welch, correction.holm(student).tolist(), correction.holm(welch).tolist()]
    return [
        Star(cell, base, cell.remark.startswith("starred"), *(None if p != p else p for p in values))
        for (cell, base), *values in zip(pairs, *columns, strict=True)
    ]


def _p(cell: Printed, base: Printed, *, equal_variances: bool) -> float:
    """nan where a cell has no printed deviation or seeds."""
    if cell.sd is None or base.sd is None or cell.seeds is None or base.seeds is None:
        return float("nan")
    assert cell.value is not None and base.value is not None
    return two_samples.from_summaries(
        (cell.value, cell.sd, cell.seeds), (base.value, base.sd, base.seeds), equal_variances=equal_variances
    )


def verdict() -> str:
    """In words, with the numbers."""
    stars = calibration_table_1()
    tested = [star for star in stars if star.student is not None]
    better = [star for star in tested if star.difference > 0 and star.student is not None and star.student < 0.05]
    marked = [star for star in stars if star.starred]
    worse = sum(star.difference < 0 and star.student is not None and star.student < 0.05 for star in tested)
    lines = [
        f"{star.cell.label} on {star.cell.model}, {star.cell.task}"
        f"{' (mismatched)' if star.cell.metric.endswith('_mismatched') else ''}: "
        f"{star.difference:+.2f}, p = {star.student:.3f} by the paper's test, {star.welch:.3f} by Welch's, "
        f"{star.student_holm:.2g} after Holm's correction for {len(tested)} comparisons."
        for star in dict.fromkeys([*marked, *better])
    ]
    kept = sum(star.student_holm is not None and star.student_holm < 0.05 for star in better)
    ends = (
        f"Of {len(tested)} comparisons, {len(better)} are better with p < 0.05 by the paper's own test and {worse} are worse; "
        f"after Holm's correction {kept or 'none'} of the better ones {'remain' if kept != 1 else 'remains'}."
    )
    return " ".join([*lines, ends])
