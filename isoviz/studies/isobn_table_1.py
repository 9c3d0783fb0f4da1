"""Table 1 of IsoBN: performance on seven tasks with and without it, median and standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from isoviz import tasks
from isoviz.comparisons import wording
from isoviz.methods.isobn import IsoBN
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import setting
from isoviz.statistics import mean_sd
from isoviz.studies import isobn_grid, printed
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.judging import Change, best, changes, moved, runs_of
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.published import Printed
from isoviz.studies.result import Row, Table
from isoviz.studies.trained import Drawing, TrainedStudy

PAPER = IsoBN.paper
assert PAPER is not None


def improves_everywhere(evidence: Evidence) -> Judgement:
    """IsoBN at its best β minus none, by task."""
    differences = changes(evidence, runs_of("isobn", "beta"), runs_of("baseline"))
    return moved(differences, "IsoBN at its best β minus none (optimistic)", ended=not evidence.unfinished)


def averages(evidence: Evidence) -> tuple[dict[int, float], dict[int, float]]:
    """Seed → mean over tasks, with IsoBN at its best β of each task and without; seeds that have all tasks."""
    with_it: dict[int, list[float]] = {}
    without: dict[int, list[float]] = {}
    count = 0
    for model in evidence.models:
        for task in evidence.tasks:
            subset, metric = evidence.where(model=model, task=task), tasks.get(task).primary
            best_beta = best(subset.where(method="isobn"), metric, "beta")
            count += 1
            for totals, part in ((with_it, best_beta), (without, subset.where(method="baseline"))):
                for seed, value in (part.cell(metric).values if part else {}).items():
                    totals.setdefault(seed, []).append(value)
    complete = [
        {seed: sum(v) / count for seed, v in by_seed.items() if len(v) == count} for by_seed in (with_it, without)
    ]
    return complete[0], complete[1]


def average_rises(evidence: Evidence) -> Judgement:
    """The mean over tasks, paired by seed."""
    change = Change.of("all tasks", *averages(evidence))
    return moved([change], "Average with each task's best β, chosen on the rows that are reported, minus none")


class IsoBNTable1(TrainedStudy):
    """Rows of models with and without IsoBN, columns of tasks and their average."""

    slug: ClassVar[str] = "isobn-table-1"
    title: ClassVar[str] = "Does IsoBN improve fine-tuning?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Table 1"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "Each task's metric without IsoBN and with it at its best β: median and standard deviation over seeds, and the average over "
        "tasks."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "β, learning rate and batch size were chosen on the validation set that the table reports, for each task; which ones is not "
        "printed. The baseline has no β to choose.",
        "The paper does not name the metric of STS-B. Here it is Pearson's correlation.",
        "Equation 7 lacks the square root that keeps the variance, and the printed momentum weighs the old statistics, as here.",
        "The pooler of roberta-large has no published weights, so its fine-tuning starts from a random one.",
        "No test is given. A median of five with a standard deviation of 1.6 points leaves room for one point of difference.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("IsoBN improves the metric on every task.", improves_everywhere, about_performance=True),
        Claim("IsoBN improves the average over tasks.", average_rises, about_performance=True),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on 3 demo tasks, 1,000 to 2,000 training rows, 3 epochs, β = 0.5 and 1, 3 seeds",
            "full": "bert-base-cased and roberta-large on 7 GLUE tasks, β at 3 values, 5 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (isobn_grid.ISOBN,)

    def show(self, evidence: Evidence) -> Drawing:
        """The table."""
        rows: list[Row] = []
        for model in evidence.models:
            subset = evidence.where(model=model)
            of_average = averages(subset)
            for method, values in (("isobn", of_average[0]), ("baseline", of_average[1])):
                cells = []
                for task in evidence.tasks:
                    metric = tasks.get(task).primary
                    part = subset.where(task=task, method=method)
                    best_beta = best(part, metric, "beta") if method == "isobn" else None
                    text = (best_beta or part).cell(metric).text(middle="median")
                    cells.append(f"{text}, β = {setting(best_beta.planned[0].params['beta'])}" if best_beta else text)
                mean = mean_sd(values.values())[0]
                rows.append(
                    [
                        model,
                        "IsoBN" if method == "isobn" else "none",
                        *cells,
                        None if mean is None else wording.number(mean),
                    ]
                )
        columns = [f"{task_title(task)}, {tasks.get(task).primary}" for task in evidence.tasks]
        table = Table(
            title="Performance with and without IsoBN",
            header=["model", "method", *columns, "average"],
            rows=rows,
            notes=[
                "median (standard deviation) over seeds; the average is that of the seeds that have every task. β is the best one."
            ],
        )

        def chosen_runs(cell: Printed, cell_evidence: Evidence) -> Evidence:
            part = printed.by_method(cell, cell_evidence)
            return (best(part, cell.metric, "beta") or part) if cell.method == "isobn" else part

        numbers = printed.with_measured(evidence, "isobn", "Table 1", isobn_grid.MODELS, chosen_runs, "median")
        return Drawing(tables=[table], published=printed.titled("IsoBN", numbers))
