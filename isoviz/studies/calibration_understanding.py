"""Tables 1 and 4 of isotropy calibration: performance on understanding tasks, and the isotropy of the output layer's rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from isoviz import tasks
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import method_title
from isoviz.studies import calibration_grids as grids
from isoviz.studies import printed
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.judging import (
    SPECTRUM,
    TOO_FEW,
    Change,
    against_baseline,
    detectable,
    goes_with,
    moved,
    never_better,
    signs,
    unchanged,
    without_effect,
)
from isoviz.studies.papers import CALIBRATION
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.published.significance import calibration_table_1, verdict
from isoviz.studies.result import Row, Table
from isoviz.studies.trained import Drawing, TrainedStudy

FLOW_DIFFERS = (
    "Flow here trains its map along with the task and passes the mapped vectors to the output layer, which has to learn them anew. "
    "The paper does not say how its Flow is trained or what its output layer reads."
)


def metric_of(task: str) -> str:
    """As in the paper: F1 for MRPC, else the task's primary metric."""
    return "f1" if task == "glue/mrpc" else tasks.get(task).primary


def _scores(evidence: Evidence, *methods: str) -> list[Change]:
    """Scores minus the baseline's, collapsed runs left out."""
    return against_baseline(evidence, metric_of, methods, printed_in=("calibration", "Table 1"))


def none_is_better(evidence: Evidence) -> Judgement:
    """No method is better than the baseline on most tasks."""
    return never_better({method_title(method): _scores(evidence, method) for method in grids.ORDER[1:]})


def scores_stay(evidence: Evidence, method: str) -> Judgement:
    """Scores with the method minus scores without."""
    return unchanged(_scores(evidence, method), "Scores change by")


def spectrum_hurts(evidence: Evidence) -> Judgement:
    """Whether spectrum control collapses, or is significantly worse than the baseline.

    With c₁ = 0 the targets keep the norm of the weight, so the collapse of the printed scores cannot occur: then its absence decides
    nothing.
    """
    runs = evidence.where(lambda config: config.method in SPECTRUM)
    collapsed = [run for run in runs.finished if run.row.collapsed]
    differences = _scores(evidence, *SPECTRUM)
    if not any(change.tested for change in differences) and not collapsed:
        return TOO_FEW
    worse = signs(differences).count(-1)
    lowest = min((change for change in differences if change.values), key=lambda change: change.mean, default=None)
    sentence = (
        f"{len(collapsed)} of {len(runs.finished)} runs collapsed, and {worse} of {len(differences)} comparisons with the baseline are "
        f"lower beyond chance (Holm){f'; lowest {lowest.words()}' if lowest else ''}.{detectable(differences)}"
    )
    if collapsed or worse:
        return "held", sentence
    if not all(runs.distinct("c1")):
        return (
            "cannot tell",
            f"{sentence} The scale c₁ = 0 keeps the norm of the weight, so it cannot vanish as in the paper.",
        )
    excluded = all(change.tested and change.ends[0] >= -change.margin for change in differences)
    return ("not held" if excluded and not runs.unfinished else "cannot tell"), sentence


def stars_remain(evidence: Evidence) -> Judgement:
    """From the published means and deviations only, without our runs."""
    marked = [star for star in calibration_table_1() if star.starred]
    remaining = [star for star in marked if star.student_holm is not None and star.student_holm < 0.05]
    return ("held" if len(remaining) == len(marked) else "not held"), f"From the published numbers: {verdict()}"


def stars_table() -> Table:
    """The published stars, and all published improvements with p < 0.05, tested again."""
    rows: list[Row] = []
    for star in calibration_table_1():
        better = star.difference > 0 and star.student is not None and star.student < 0.05
        if star.starred or better:
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


class CalibrationTable1(TrainedStudy):
    """Rows of models and methods, columns of tasks."""

    slug: ClassVar[str] = "calibration-table-1"
    title: ClassVar[str] = "Does isotropy calibration help language understanding?"
    paper: ClassVar[Paper] = CALIBRATION
    place: ClassVar[str] = "Table 1"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "Each task's metric without calibration and with CosReg, spectrum control (polynomial and exponential) and Flow; mean and "
        "standard deviation over three seeds. Beside it, the paper's stars tested again from its printed numbers."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The strengths of all methods, the decays of spectrum control and everything about Flow are not given. Ours keep the norm of "
        "the output layer, so it cannot be emptied as the printed scores suggest.",
        "A score of 0 or none is a model that predicts one class; such runs are left out here and counted.",
        "The stars are two-sided t-tests with equal variances, three seeds each, and none of 100 comparisons is corrected for. The "
        "table stars Spectrum-Pol on WNLI, the text names Spectrum-Exp.",
        "STS-B's low correlations and its printed isotropy fit scores rounded to six classes.",
        "According to the paper, RoBERTa's learning rate on SST-2 and STS-B differs from the others, but both are printed as 1e-5.",
        "The paper does not name its checkpoints (cased or uncased, base).",
        FLOW_DIFFERS,
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim(
            "No calibration method is consistently better than the uncalibrated model.",
            none_is_better,
            about_performance=True,
        ),
        Claim(
            "Spectrum control degrades performance severely in some cases, or prevents learning.",
            spectrum_hurts,
            about_performance=True,
        ),
        Claim(
            "CosReg does “not affect performance much”.",
            lambda evidence: scores_stay(evidence, "cosreg"),
            about_performance=True,
        ),
        Claim(
            "Flow does “not affect performance much”.",
            lambda evidence: scores_stay(evidence, "flow"),
            about_performance=True,
        ),
        Claim("Calibration improves performance significantly in two cells, both of RoBERTa.", stars_remain),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on 3 demo tasks, 1,000 to 2,000 training rows, 3 epochs, 5 methods, 3 seeds",
            "full": "BERT, RoBERTa and DistilBERT on 9 GLUE tasks, 4 methods and Flow on BERT, 3 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.UNDERSTAND,)

    def show(self, evidence: Evidence) -> Drawing:
        """The table of scores and that of the stars."""
        rows: list[Row] = []
        for model in evidence.models:
            for method in grids.ORDER:
                subset = evidence.where(model=model, method=method)
                if subset.planned:
                    cells = [subset.where(task=task).cell(metric_of(task)).text() for task in evidence.tasks]
                    rows.append([model, method_title(method), *cells])
        columns = [f"{task_title(task)}, {metric_of(task)}" for task in evidence.tasks]
        table = Table(title="Performance by method", header=["model", "method", *columns], rows=rows,
                      notes=["mean ± standard deviation over seeds, collapsed runs left out."])  # fmt: skip
        return Drawing(
            tables=[table, stars_table()],
            published=printed.titled(
                "Isotropy calibration", printed.with_measured(evidence, "calibration", "Table 1", grids.MODELS)
            ),
        )


def spectrum_raises_i1(evidence: Evidence) -> Judgement:
    """I1 with spectrum control minus I1 without."""
    return moved(against_baseline(evidence, "i1", SPECTRUM), "I1 changes by", of="most")


def others_leave_it(evidence: Evidence) -> Judgement:
    """I1 with CosReg and Flow minus I1 without."""
    return unchanged(
        against_baseline(evidence, "i1", ("cosreg", "flow"), printed_in=("calibration", "Table 4")), "I1 changes by"
    )


def isotropy_against_performance(evidence: Evidence) -> Judgement:
    """Spearman's ρ of I1 with performance over methods, within models and tasks."""
    x, y, names = [], [], []
    for model in evidence.models:
        for task in evidence.tasks:
            for method in grids.ORDER:
                part = evidence.where(model=model, task=task, method=method)
                isotropy, score = part.cell("i1").mean, part.cell(metric_of(task)).mean
                if isotropy is not None and score is not None and not any(map(without_effect, part.planned)):
                    x.append(isotropy)
                    y.append(score)
                    names.append(f"{model} on {task}")
    return goes_with(x, y, names, "of I1 with performance", -1)


class CalibrationTable4(TrainedStudy):
    """I1 and I2 of the models of Table 1."""

    slug: ClassVar[str] = "calibration-table-4"
    title: ClassVar[str] = "Does calibration make the output layer isotropic?"
    paper: ClassVar[Paper] = CALIBRATION
    place: ClassVar[str] = "Table 4"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "I1 (1 is most isotropic) and I2 (0 is) of the output layer's rows after fine-tuning with each method; the runs are those of "
        "Table 1."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The printed pairs are impossible under the printed formulas: I1 = 0.92 allows an I2 of at most 0.042. They fit rows in place "
        "of columns of the eigenvector matrix and no division by the number of vectors. Ours follow the formulas.",
        "I1 and I2 depend on the scale of the weight: shrinking it drives I1 to 1 and I2 to 0. The length of the weight is shown with "
        "them, because the printed gain of spectrum control is that of a weight that vanishes.",
        "On tasks with two or three labels the output layer has two or three rows; its isotropy says little.",
        "Several printed cells are swapped or lack a digit (RoBERTa on MNLI and QQP); two columns of DistilBERT agree on five tasks.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("Spectrum control makes the output embeddings more isotropic.", spectrum_raises_i1),
        Claim("CosReg and Flow hardly change the isotropy of the output embeddings.", others_leave_it),
        Claim("Where isotropy rises, performance falls.", isotropy_against_performance, about_performance=True),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {name: f"the runs of Table 1: {size}" for name, size in CalibrationTable1.scales.items()}
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.UNDERSTAND,)

    def show(self, evidence: Evidence) -> Drawing:
        """A row per model, task and method."""
        rows: list[Row] = []
        for model in evidence.models:
            for task in evidence.tasks:
                for method in grids.ORDER:
                    subset = evidence.where(model=model, task=task, method=method)
                    if subset.planned:
                        cells = [subset.cell(name).text() for name in ("i1", "i2", "weight_norm")]
                        rows.append([model, task_title(task), method_title(method), *cells])
        header = ["model", "task", "method", "I1", "I2", "norm of the weight"]
        table = Table(title="Isotropy of the output layer", header=header, rows=rows,
                      notes=["mean ± standard deviation over seeds, collapsed runs included; Frobenius norm."])  # fmt: skip
        return Drawing(
            tables=[table],
            published=printed.titled(
                "Isotropy calibration", printed.with_measured(evidence, "calibration", "Table 4", grids.MODELS)
            ),
        )
