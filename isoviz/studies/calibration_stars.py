"""The stars of isotropy calibration's Table 1, tested again from its printed means, deviations and three seeds.

The paper stars a model where a two-sided t-test with equal variances gives p < 0.05. It tests every cell and corrects for none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from isoviz.statistics import two_samples
from isoviz.studies import published
from isoviz.studies.judging import ALPHA, Judgement
from isoviz.studies.records import Evidence, task_title
from isoviz.studies.result import Table

if TYPE_CHECKING:
    import pandas as pd

_MISMATCHED = "_mismatched"


@functools.cache
def stars() -> pd.DataFrame:
    """Every comparison of Table 1 that its print allows, in its order: a calibrated model against the uncalibrated one on a task.

    The columns of `Printed`, and `difference` in the paper's percent, `starred` by the paper as significantly better, p of the test
    with (`student`) and without equal variances (`welch`), nan without a printed spread, both corrected over all comparisons
    (`…_holm`), and `better`: the paper's own test, repeated, finds it better.
    """
    import pandas as pd

    cells = pd.DataFrame([vars(cell) for cell in published.of("calibration", "Table 1")])
    is_baseline = cells["method"] == "baseline"
    printed, none = cells[~is_baseline & cells["value"].notna()], cells[is_baseline]
    frame = printed.merge(none, how="left", on=["model", "task", "metric"], suffixes=("", "_none"))
    summaries = frame[["value", "sd", "seeds", "value_none", "sd_none", "seeds_none"]].to_numpy(dtype=float)
    for name, equal in (("student", True), ("welch", False)):
        pairs = ((tuple(row[:3]), tuple(row[3:])) for row in summaries.tolist())
        frame[name] = [two_samples.from_summaries(*pair, equal_variances=equal) for pair in pairs]
        frame[f"{name}_holm"] = two_samples.holm(frame[name])
    frame["difference"] = frame["value"] - frame["value_none"]
    frame["starred"] = frame["remark"].str.startswith("starred")
    return frame.assign(better=(frame["difference"] > 0) & (frame["student"] < ALPHA))


def stars_in_words() -> str:
    """The marked cells and those that are better, each with its tests, and what remains after the correction."""
    import pandas as pd

    every = stars()
    tested, better = every["student"].count(), every[every["better"]]
    lines = [
        f"{star['label']} on {star['model']}, {star['task']}{' (mismatched)' if star['metric'].endswith(_MISMATCHED) else ''}: "
        f"{star['difference']:+.2f}, p = {star['student']:.3f} by the paper's test, {star['welch']:.3f} by Welch's, "
        f"{star['student_holm']:.2g} after Holm's correction for {tested} comparisons."
        for star in pd.concat([every[every["starred"]], better[~better["starred"]]]).to_dict("records")
    ]
    worse = ((every["difference"] < 0) & (every["student"] < ALPHA)).sum()
    kept = (better["student_holm"] < ALPHA).sum()
    ends = (
        f"Of {tested} comparisons, {len(better)} are better with p < 0.05 by the paper's own test and {worse} are worse; "
        f"after Holm's correction {kept or 'none'} of the better ones {'remain' if kept != 1 else 'remains'}."
    )
    return " ".join([*lines, ends])


def stars_remain(evidence: Evidence) -> Judgement:
    """From the published means and deviations only, without our runs."""
    held = (stars().query("starred")["student_holm"] < ALPHA).all()
    return ("held" if held else "not held"), f"From the published numbers: {stars_in_words()}"


def stars_table(evidence: Evidence) -> Table:
    """The published stars, and all published improvements with p < 0.05, tested again."""
    columns = {
        "model": "model", "label": "method", "task": "task", "metric": "metric", "difference": "difference", "starred": "starred",
        "student": "p, equal variances", "welch": "p, Welch", "student_holm": "p, Holm", "welch_holm": "p, Welch and Holm",
    }  # fmt: skip
    shown = stars().query("starred or better")
    shown = shown.assign(
        task=shown["task"].map(task_title),
        metric=shown["metric"].replace(f"accuracy{_MISMATCHED}", "mismatched accuracy"),
        difference=shown["difference"].round(2),
        starred=shown["starred"].map({True: "yes", False: "no"}),
    )
    rows = shown[list(columns)].astype(object).where(shown[list(columns)].notna(), None).to_numpy().tolist()
    digits = ((float(f"{cell:.3g}") if isinstance(cell, float) else cell for cell in row[6:]) for row in rows)
    return Table(
        title="The paper's stars, tested again from its published numbers",
        header=list(columns.values()),
        rows=[[*row[:6], *p_values] for row, p_values in zip(rows, digits, strict=True)],
        notes=["Two-sided tests of means and standard deviations of three seeds, as printed. The paper uses equal variances and "
               "corrects for nothing; Holm's correction is for every comparison of its table."],
    )  # fmt: skip
