"""Tables 1 and 2 of I-STAR: performance beside plain fine-tuning and CosReg, and the λ and ζ that are best on each task."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import setting
from isoviz.studies import istar_grids as grids
from isoviz.studies import printed
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.istar_lambda import PAPER
from isoviz.studies.judging import TOO_FEW, Part, best, changes, detectable, moved, primary, runs_of, signs
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.published import Printed
from isoviz.studies.result import Row, Table
from isoviz.studies.trained import Drawing, TrainedStudy


def negative(evidence: Evidence) -> Evidence:
    """I-STAR with λ below 0, which makes representations less isotropic."""
    return evidence.where(lambda config: config.method == "istar" and float(config.params["lam"]) < 0)


def negative_wins(evidence: Evidence) -> Judgement:
    """Is some negative λ better than plain fine-tuning beyond chance on most tasks? Corrected over all λ and tasks."""
    by_lam = [
        changes(evidence, _with(lam), runs_of("baseline"), name=f"λ = {setting(lam)}")
        for lam in negative(evidence).distinct("lam")
    ]
    by_task = list(zip(*by_lam, strict=True))
    every = [change for of_task in by_task for change in of_task]
    if not any(change.tested for change in every):
        return TOO_FEW
    sign_of = iter(signs(every))
    of_tasks = [[next(sign_of) for _ in of_task] for of_task in by_task]
    wins, losses = sum(1 in of_task for of_task in of_tasks), sum({-1} == set(of_task) for of_task in of_tasks)
    defined = [[change for change in of_task if change.values] for of_task in by_task]
    ends = "; ".join(max(of_task, key=lambda change: change.mean).words() for of_task in defined[:4] if of_task)
    sentence = (
        f"Some negative λ beats plain fine-tuning beyond chance on {wins} of {len(by_task)} tasks, and every one loses on {losses} "
        f"(paired by seed, after Holm's correction). Highest: {ends}.{detectable(every)}"
    )
    if 2 * wins > len(by_task):
        return "held", sentence
    return ("not held" if losses > wins else "cannot tell"), sentence


def _with(lam: float) -> Part:
    return lambda evidence, metric: evidence.where(method="istar", lam=lam)


def cosreg_loses(evidence: Evidence) -> Judgement:
    """The best negative λ minus CosReg, by task."""
    differences = changes(evidence, lambda part, metric: best(negative(part), metric, "lam"), runs_of("cosreg"))
    return moved(differences, "The best negative λ (the best of several is optimistic) minus CosReg", of="most")


class IStarTable1(TrainedStudy):
    """Rows of methods, columns of tasks."""

    slug: ClassVar[str] = "istar-table-1"
    title: ClassVar[str] = "Does I-STAR beat plain fine-tuning and CosReg?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Table 1"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "Each task's metric with I-STAR at its best negative λ, without a penalty, and with CosReg at λ = 1; mean and standard "
        "deviation over seeds."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "λ, ζ, learning rate, batch size and epochs were tuned for I-STAR; the paper does not say whether the baselines were too.",
        "They were chosen on the validation set that the table reports, which favours the method with more settings to choose from.",
        "The text has Matthews' and Pearson's correlation for CoLA and STS-B; the authors' code computes accuracy only.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim(
            "I-STAR with a negative λ improves on plain fine-tuning on most tasks.",
            negative_wins,
            about_performance=True,
        ),
        Claim("I-STAR with a negative λ improves on CosReg on most tasks.", cosreg_loses, about_performance=True),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on 2 demo tasks, 1,000 and 1,500 training rows, 3 epochs, 3 seeds; the runs of Figure 3 and CosReg",
            "full": "ALBERT, BERT and DistilBERT on 9 tasks, 5 seeds; the runs of Figure 3 and CosReg",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.LAMBDA,)

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """I-STAR with a negative λ, the baseline, and CosReg."""
        return config.method != "istar" or float(config.params["lam"]) < 0

    def show(self, evidence: Evidence) -> Drawing:
        """The table, and the λ that each I-STAR cell has."""
        rows: list[Row] = []
        for model in evidence.models:
            for method, name in (("istar", "I-STAR"), ("baseline", "Base"), ("cosreg", "CosReg")):
                cells = []
                for task in evidence.tasks:
                    metric = tasks.get(task).primary
                    part: Evidence | None = evidence.where(model=model, task=task, method=method)
                    assert part is not None
                    best_runs = best(part, metric, "lam") if method == "istar" else part
                    text = (best_runs or part).cell(metric).text()
                    if method == "istar" and best_runs:
                        text += f", λ = {setting(best_runs.planned[0].params['lam'])}"
                    cells.append(text)
                rows.append([model, name, *cells])
        columns = [f"{task_title(task)}, {tasks.get(task).primary}" for task in evidence.tasks]
        table = Table(
            title="Performance of I-STAR, plain fine-tuning and CosReg",
            header=["model", "method", *columns],
            rows=rows,
            notes=[
                "mean ± standard deviation over seeds. The λ of an I-STAR cell is the best of the negative ones on that task."
            ],
        )
        return Drawing(
            tables=[table],
            published=printed.titled(
                "I-STAR", printed.with_measured(evidence, "istar", "Table 1", grids.MODELS, _of_cell)
            ),
        )


def _of_cell(cell: Printed, evidence: Evidence) -> Evidence:
    part = printed.by_method(cell, evidence)
    return (best(part, cell.metric, "lam") or part) if cell.method == "istar" else part


def optimum_is_negative(evidence: Evidence) -> Judgement:
    """The best negative λ minus the best positive λ, each with its best ζ, by task."""

    def on_side(sign: int) -> Part:
        return lambda part, metric: best(
            part.where(lambda config: sign * float(config.params["lam"]) > 0), metric, "lam", "zeta"
        )

    chosen = [
        f"{task_title(task)} λ = {' minus λ = '.join(setting(side.planned[0].params['lam']) for side in sides if side)}"
        for model in evidence.models
        for task in evidence.tasks
        for sides in [[on_side(sign)(evidence.where(model=model, task=task), primary(task)) for sign in (-1, 1)]]
        if all(sides)
    ]
    return moved(
        changes(evidence, on_side(-1), on_side(1)), f"Best negative minus best positive λ ({'; '.join(chosen)})"
    )


class IStarTable2(TrainedStudy):
    """The best λ and ζ of a grid, task by task."""

    slug: ClassVar[str] = "istar-table-2"
    title: ClassVar[str] = "Which λ and ζ are best?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Table 2"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "For each model and task, the λ and ζ with the highest mean of the task's metric, and how clear the choice is."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The paper does not give the number of seeds behind each choice.",
        "ALBERT's average ζ is printed as 0.36; its nine values average 0.378.",
        "At another ζ the same λ pulls less or more: the penalty's gradient scales with 1 − ζ.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("Every optimal λ is negative.", optimum_is_negative, about_performance=True),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, λ at 4 values, ζ at 2, 3 seeds",
            "full": "ALBERT, BERT and DistilBERT on 9 tasks, λ at 6 values, ζ at 4, 5 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.SEARCH,)

    def show(self, evidence: Evidence) -> Drawing:
        """The choices, and every mean behind them."""
        best_runs: list[Row] = []
        every: list[Row] = []
        zetas = evidence.distinct("zeta")
        for model in evidence.models:
            for task in evidence.tasks:
                subset, metric = evidence.where(model=model, task=task), tasks.get(task).primary
                part = best(subset, metric, "lam", "zeta")
                params = part.planned[0].params if part else {}
                best_params = [setting(params[name]) if params else None for name in ("lam", "zeta")]
                best_runs.append([model, task_title(task), *best_params, part.cell(metric).text() if part else "—"])
                for lam in evidence.distinct("lam"):
                    means = [subset.where(lam=lam, zeta=zeta).cell(metric).text() for zeta in zetas]
                    every.append([model, task_title(task), setting(lam), *means])
        header = ["model", "task", "best λ", "best ζ", "performance"]
        tables = [
            Table(title="Best λ and ζ", header=header, rows=best_runs,
                  notes=["The best of several settings on the rows that it was chosen by: optimistic."]),
            Table(title="Performance at every λ and ζ", header=["model", "task", "λ", *(f"ζ = {setting(z)}" for z in zetas)],
                  rows=every, notes=["mean ± standard deviation over seeds."]),
        ]  # fmt: skip
        return Drawing(tables=tables)
