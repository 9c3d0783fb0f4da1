"""Figure 3 of I-STAR: isotropy against performance as λ goes from −5 to 5."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.methods.istar import IStar
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import setting
from isoviz.studies import istar_grids as grids
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.judging import goes_with
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.result import Axis, Figure, Panel, Row, Series, Table
from isoviz.studies.trained import Drawing, TrainedStudy

PAPER = IStar.paper
assert PAPER is not None

STAR = "isoscore_star"


def points_of(evidence: Evidence, metric: str) -> list[Series]:
    """One point per λ of a model on a task, with the spread over seeds both ways; plain fine-tuning is λ = 0."""
    series = []
    for lam in (0.0, *grids.LAMBDAS):
        part = evidence.where(method="istar", lam=lam) if lam else evidence.where(method="baseline")
        x, y = part.ends(STAR), part.ends(metric)
        if x is None or y is None:
            continue
        series.append(
            Series(
                name=f"λ = {setting(lam)}" if lam else "no penalty",
                role="measured",
                group=f"λ = {lam:g}",
                x=[x[0]], x_low=[x[1]], x_high=[x[2]],
                y=[y[0]], low=[y[1]], high=[y[2]],
                spread="mean ± standard deviation over seeds",
                value=lam,
            )
        )  # fmt: skip
    return series


def _settings(evidence: Evidence, y: str) -> tuple[list[float], list[float], list[float], list[str]]:
    """λ, IsoScore* and another number of every setting that has both, and which model on which task it is of."""
    lams, stars, others, names = [], [], [], []
    for model in evidence.models:
        for task in evidence.tasks:
            subset = evidence.where(model=model, task=task)
            for lam in (0.0, *grids.LAMBDAS):
                part = subset.where(method="istar", lam=lam) if lam else subset.where(method="baseline")
                scores = part.cell(y or tasks.get(task).primary)
                star, other = part.cell(STAR).mean, scores.mean
                # the runs that a collapse spared are no picture of their setting
                if star is not None and other is not None and len(scores.values) > len(scores.excluded):
                    lams.append(lam)
                    stars.append(star)
                    others.append(other)
                    names.append(f"{model} on {task}")
    return lams, stars, others, names


def less_isotropic_is_better(evidence: Evidence) -> Judgement:
    """Spearman's ρ of IsoScore* with performance over λ, within tasks."""
    _, stars, scores, names = _settings(evidence, "")
    return goes_with(stars, scores, names, "of IsoScore* with performance", -1)


def sign_of_lambda_steers(evidence: Evidence) -> Judgement:
    """Spearman's ρ of λ with IsoScore*, within tasks."""
    lams, stars, _, names = _settings(evidence, STAR)
    return goes_with(lams, stars, names, "of λ with IsoScore*", 1)


class IStarFigure3(TrainedStudy):
    """One panel per model and task, one point per λ."""

    slug: ClassVar[str] = "istar-figure-3"
    title: ClassVar[str] = "Does less isotropy mean better performance?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 3"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "IsoScore* against the task's metric for I-STAR at λ from −5 to 5, with ζ = 0.2 and error bars over seeds both ways. "
        "Negative λ makes the token vectors less isotropic."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "Learning rate, batch size and number of epochs were searched per model and task; the values that were chosen are not printed. "
        "Here: 3e-5, 32 and 3 at full scale.",
        "The text accumulates gradients over two batches, the code does not. Here: no accumulation.",
        "λ = 0 is not in the figure. It is added here, because it is what the others are compared with.",
        "The authors' code counts padding vectors as points. Here they are left out.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("Isotropy and performance are inversely related.", less_isotropic_is_better, about_performance=True),
        Claim("Positive λ makes representations more isotropic, negative λ less isotropic.", sign_of_lambda_steers),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on 2 demo tasks, 1,000 and 1,500 training rows, 3 epochs, λ at 7 values and none, 3 seeds",
            "full": "ALBERT, BERT and DistilBERT on 9 tasks, λ at 7 values and none, 5 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.LAMBDA,)

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """All but CosReg."""
        return config.method != "cosreg"

    def show(self, evidence: Evidence) -> Drawing:
        """Panels and the same as a table."""
        panels: list[Panel] = []
        rows: list[Row] = []
        for task in evidence.tasks:
            metric = tasks.get(task).primary
            for model in evidence.models:
                subset = evidence.where(model=model, task=task)
                series = points_of(subset, metric)
                panels.append(
                    Panel(
                        title=f"{task_title(task)}\n{model.rsplit('/', 1)[-1]}",
                        kind="points",
                        x_axis=Axis(label="IsoScore*, ζ = 0.2"),
                        y_axis=Axis(label=metric),
                        series=series,
                    )
                )
                for lam in (0.0, *grids.LAMBDAS):
                    part = subset.where(method="istar", lam=lam) if lam else subset.where(method="baseline")
                    cells = (part.cell(STAR).text(), part.cell(metric).text())
                    rows.append([task_title(task), model, setting(lam) if lam else "none", *cells])
        count = max(1, math.ceil(math.sqrt(len(panels))))
        figure = Figure(title="IsoScore* against performance", place=self.place, columns=min(count, 3), panels=panels)
        header = ["task", "model", "λ", "IsoScore*", "performance"]
        table = Table(title="IsoScore* and performance by λ", header=header, rows=rows,
                      notes=["mean ± standard deviation over seeds; performance is the task's primary metric."])  # fmt: skip
        return Drawing(figures=[figure] if panels else [], tables=[table])
