"""`isoviz compare`: do these runs differ?"""

from __future__ import annotations

from typing import Annotated

from isoviz.commands.options import StoreOption
from isoviz.commands.output import Answer, print_table
from isoviz.comparisons import Part, Table, wording
from isoviz.operations.operation import argument
from isoviz.operations.table import Alpha, Baseline, By, ComparedMetric, compare
from isoviz.runs.store import Store


def run(
    ids: Annotated[list[str], argument("runs, or experiments: all runs launched together", "ID", positional=True)],
    by: By = "method",
    metric: ComparedMetric = None,
    baseline: Baseline = None,
    alpha: Alpha = 0.05,
    store: StoreOption = None,
) -> Answer:
    """Compare runs, whatever the result."""
    table = compare(Store(store), ids, by=by, metric=metric, baseline=baseline, alpha=alpha)
    return Answer(table.model_dump(mode="json"), lambda: show(table))


def show(table: Table) -> None:
    """The table as text."""
    for part in table.parts:
        _show(part, table)
    if table.tests > 1:
        print(f"\nHolm's correction is for {table.tests} comparisons; intervals are for one.")


def _show(part: Part, table: Table) -> None:
    print(f"\n{part.model} on {part.task}: {part.metric}")
    for warning in part.warnings:
        print(f"warning: {warning}")
    lettered = any(arm.letters for arm in part.arms)
    header = [table.by, "n", "mean ± sd", "95 % interval", "median", *(["group"] if lettered else []), "each seed"]
    rows = []
    for arm in part.arms:
        spread = f" ± {wording.number(arm.sd, scale=part.scale)}" if arm.sd is not None else ""
        mean, low, high, median = (
            wording.number(x, scale=part.scale) for x in (arm.mean, arm.low, arm.high, arm.median)
        )
        interval = f"[{low}, {high}]" if arm.low is not None else ""
        seeds = "  ".join(f"{seed}: {wording.number(value, scale=part.scale)}" for seed, value in arm.values.items())
        letters = [arm.letters] if lettered else []
        rows.append([arm.label, str(arm.n), f"{mean}{spread}", interval, median, *letters, seeds])
    print_table(header, rows)
    if lettered:
        print(
            f"Group: settings that share a letter are not shown to differ (Holm's correction for {part.pairs_tested} pairs)."
        )
    for comparison in part.comparisons:
        print(comparison.sentence)
    for arm in part.arms:
        for one in arm.excluded:
            print(f"excluded: {one.run}, {arm.label}, seed {one.seed}: {one.reason}")
        if arm.repeats:
            print(
                f"excluded: {arm.repeats} older run{'s' if arm.repeats > 1 else ''} of {arm.label} with a seed that ran again"
            )
    for note in part.notes:
        print(f"note: {note}")
