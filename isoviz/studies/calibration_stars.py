"""The stars of isotropy calibration's Table 1, tested again from its printed means, deviations and three seeds.

The paper stars a model where a two-sided t-test with equal variances gives p < 0.05. It tests every cell and corrects for none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from isoviz.statistics import two_samples
from isoviz.studies import published
from isoviz.studies.judging import ALPHA, Judgement
from isoviz.studies.published import Printed
from isoviz.studies.records import Evidence, task_title
from isoviz.studies.result import Row, Table


@dataclass(frozen=True)
class Star:
    """One calibrated model against the uncalibrated one on one task.

    Attributes:
        cell, against: the two printed cells.
        student, welch: p of the test with and without equal variances; None where neither sample has a printed spread.
        student_holm, welch_holm: corrected over all comparisons of the table.
    """

    cell: Printed
    against: Printed
    student: float | None
    welch: float | None
    student_holm: float | None
    welch_holm: float | None

    @property
    def starred(self) -> bool:
        """Whether the paper marks it as significantly better."""
        return self.cell.remark.startswith("starred")

    @property
    def difference(self) -> float:
        """In the paper's percent."""
        assert self.cell.value is not None and self.against.value is not None
        return self.cell.value - self.against.value

    @property
    def better(self) -> bool:
        """Whether the paper's own test, repeated, finds it better."""
        return self.difference > 0 and _significant(self.student)


def _significant(p: float | None) -> bool:
    return p is not None and p < ALPHA


def stars() -> list[Star]:
    """Every comparison of Table 1 that its print allows, in its order."""
    cells = published.of("calibration", "Table 1")
    baselines = {(cell.model, cell.task, cell.metric): cell for cell in cells if cell.method == "baseline"}
    pairs = [
        (cell, baselines[cell.model, cell.task, cell.metric])
        for cell in cells
        if cell.method != "baseline" and cell.value is not None
    ]
    student, welch = ([_p(*pair, equal_variances=equal) for pair in pairs] for equal in (True, False))
    columns = zip(student, welch, two_samples.holm(student).tolist(), two_samples.holm(welch).tolist(), strict=True)
    return [
        Star(*pair, *(None if math.isnan(p) else p for p in values))
        for pair, values in zip(pairs, columns, strict=True)
    ]


def _p(cell: Printed, base: Printed, *, equal_variances: bool) -> float:
    """nan where a cell has no printed deviation or seeds."""
    if cell.sd is None or base.sd is None or cell.seeds is None or base.seeds is None:
        return float("nan")
    assert cell.value is not None and base.value is not None
    return two_samples.from_summaries(
        (cell.value, cell.sd, cell.seeds), (base.value, base.sd, base.seeds), equal_variances=equal_variances
    )


def stars_in_words() -> str:
    """The marked cells and those that are better, each with its tests, and what remains after the correction."""
    every = stars()
    tested = [star for star in every if star.student is not None]
    better = [star for star in tested if star.better]
    worse = sum(star.difference < 0 and _significant(star.student) for star in tested)
    lines = [
        f"{star.cell.label} on {star.cell.model}, {star.cell.task}"
        f"{' (mismatched)' if star.cell.metric.endswith('_mismatched') else ''}: "
        f"{star.difference:+.2f}, p = {star.student:.3f} by the paper's test, {star.welch:.3f} by Welch's, "
        f"{star.student_holm:.2g} after Holm's correction for {len(tested)} comparisons."
        for star in dict.fromkeys([*(star for star in every if star.starred), *better])
    ]
    kept = sum(_significant(star.student_holm) for star in better)
    ends = (
        f"Of {len(tested)} comparisons, {len(better)} are better with p < 0.05 by the paper's own test and {worse} are worse; "
        f"after Holm's correction {kept or 'none'} of the better ones {'remain' if kept != 1 else 'remains'}."
    )
    return " ".join([*lines, ends])


def stars_remain(evidence: Evidence) -> Judgement:
    """From the published means and deviations only, without our runs."""
    held = all(_significant(star.student_holm) for star in stars() if star.starred)
    return ("held" if held else "not held"), f"From the published numbers: {stars_in_words()}"


def stars_table(evidence: Evidence) -> Table:
    """The published stars, and all published improvements with p < 0.05, tested again."""
    rows: list[Row] = []
    for star in stars():
        if star.starred or star.better:
            metric = "mismatched accuracy" if star.cell.metric.endswith("_mismatched") else star.cell.metric
            p_values = [star.student, star.welch, star.student_holm, star.welch_holm]
            name: Row = [star.cell.model, star.cell.label, task_title(star.cell.task), metric]
            size: Row = [round(star.difference, 2), "yes" if star.starred else "no"]
            rows.append([*name, *size, *(None if p is None else float(f"{p:.3g}") for p in p_values)])
    return Table(
        title="The paper's stars, tested again from its published numbers",
        header=["model", "method", "task", "metric", "difference", "starred", "p, equal variances", "p, Welch", "p, Holm",
                "p, Welch and Holm"],
        rows=rows,
        notes=["Two-sided tests of means and standard deviations of three seeds, as printed. The paper uses equal variances and "
               "corrects for nothing; Holm's correction is for every comparison of its table."],
    )  # fmt: skip
