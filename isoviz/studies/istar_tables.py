"""Tables 1 and 2 of I-STAR: performance beside plain fine-tuning and CosReg, and the λ and ζ that are best on each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from isoviz import tasks
from isoviz.comparisons import wording
from isoviz.comparisons.table import Comparison
from isoviz.config import RunConfig
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import setting
from isoviz.studies import istar_grids as grids
from isoviz.studies import printed
from isoviz.studies.evidence import Difference, Evidence, corrected, number, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.istar_lambda import PAPER
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.published import Printed
from isoviz.studies.result import Row, Table
from isoviz.studies.trained import Drawing, TrainedStudy


def best(evidence: Evidence, metric: str, *names: str) -> Evidence | None:
    """The planned setting of these parameters with the highest mean; None before any run has finished."""
    settings = dict.fromkeys(tuple(config.params[name] for name in names) for config in evidence.planned)
    fields: list[dict[str, Any]] = [dict(zip(names, values, strict=True)) for values in settings]
    parts = [evidence.where(**params) for params in fields]
    candidates = [
        (mean, -index, part) for index, part in enumerate(parts) if (mean := part.cell(metric).mean) is not None
    ]
    return max(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None


def negative(evidence: Evidence) -> Evidence:
    """I-STAR with λ below 0, which makes representations less isotropic."""
    return evidence.where(lambda config: config.method == "istar" and float(config.params["lam"]) < 0)


def _range(comparisons: Sequence[Comparison]) -> str:
    """The settings with the lowest and the highest difference, with their intervals."""
    defined = sorted(
        (comparison for comparison in comparisons if comparison.difference is not None),
        key=lambda comparison: comparison.difference or 0.0,
    )
    ends_text = []
    for comparison in defined[:1] + defined[1:][-1:]:
        ends = (
            f" [{number(comparison.low)}, {number(comparison.high)}]"
            if comparison.low is not None and comparison.high is not None
            else ""
        )
        ends_text.append(f"{comparison.arm} {wording.number(comparison.difference, sign=True)}{ends}")
    return " to ".join(ends_text)


def negative_wins(evidence: Evidence) -> Judgement:
    """Is some negative λ better than plain fine-tuning beyond chance on most tasks?"""
    best_runs = evidence.where(
        lambda config: config.method == "baseline" or (config.method == "istar" and float(config.params["lam"]) < 0)
    )
    parts = [
        part
        for part in best_runs.parts()
        if any(comparison.verdict in ("apart", "not apart") for comparison in part.comparisons)
    ]
    if not parts:
        return "cannot tell", "Fewer than three seeds of each setting have a score."
    wins = [part for part in parts if any(c.verdict == "apart" and (c.difference or 0) > 0 for c in part.comparisons)]
    losses = [part for part in parts if all(c.verdict == "apart" and (c.difference or 0) < 0 for c in part.comparisons)]
    ranges = "; ".join(f"{task_title(part.task)}: {_range(part.comparisons)}" for part in parts[:4])
    sentence = (
        f"Some negative λ beats plain fine-tuning beyond chance on {len(wins)} of {len(parts)} tasks, and every one loses on "
        f"{len(losses)} (paired by seed, after Holm's correction). {ranges}."
    )
    if len(wins) > len(parts) / 2:
        return "held", sentence
    return ("not held" if len(losses) > len(wins) else "cannot tell"), sentence


def cosreg_loses(evidence: Evidence) -> Judgement:
    """The best negative λ minus CosReg, by task."""
    changes, names = [], []
    for model in evidence.models:
        for task in evidence.tasks:
            subset, metric = evidence.where(model=model, task=task), tasks.get(task).primary
            best_runs = best(negative(subset), metric, "lam")
            if best_runs:
                changes.append(
                    Difference.of(best_runs.cell(metric).values, subset.where(method="cosreg").cell(metric).values)
                )
                names.append(task_title(task))
    signs = [change.sign(p) for change, p in zip(changes, corrected(changes), strict=True)]
    if not any(change.n >= 3 for change in changes):
        return "cannot tell", "Fewer than three seeds of each setting have a score."
    changes_text = "; ".join(f"{name} {change.words()}" for name, change in zip(names, changes, strict=True))
    sentence = f"The best negative λ minus CosReg: {changes_text}; the best of several λ is optimistic."
    if sum(sign > 0 for sign in signs) > len(signs) / 2:
        return "held", sentence
    return ("not held" if sum(sign < 0 for sign in signs) > len(signs) / 2 else "cannot tell"), sentence


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
    changes, texts = [], []
    for model in evidence.models:
        for task in evidence.tasks:
            subset, metric = evidence.where(model=model, task=task), tasks.get(task).primary
            below = best(subset.where(lambda config: float(config.params["lam"]) < 0), metric, "lam", "zeta")
            above = best(subset.where(lambda config: float(config.params["lam"]) > 0), metric, "lam", "zeta")
            if below and above:
                changes.append(Difference.of(below.cell(metric).values, above.cell(metric).values))
                texts.append(
                    f"{task_title(task)} λ = {setting(below.planned[0].params['lam'])} minus "
                    f"λ = {setting(above.planned[0].params['lam'])}: {changes[-1].words()}"
                )
    if not any(change.n >= 3 for change in changes):
        return "cannot tell", "Fewer than three seeds of each setting have a score."
    signs = [change.sign(p) for change, p in zip(changes, corrected(changes), strict=True)]
    sentence = f"Best negative minus best positive λ: {'; '.join(texts)}."
    if all(sign > 0 for sign in signs):
        return "held", sentence
    return ("not held" if any(sign < 0 for sign in signs) else "cannot tell"), sentence


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
