"""Tables 2 and 3 and Figure 2 of IsoLayer: performance, IsoScore and explained variance with and without the layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from isoviz import tasks
from isoviz.comparisons import wording
from isoviz.config import RunConfig
from isoviz.methods.isolayer import IsoLayer
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import method_title
from isoviz.studies import isobn_grid, printed
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.judging import Change, against_baseline, best, both, changes, moved, primary, runs_of, unchanged
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.records import RunRecord
from isoviz.studies.result import Axis, Figure, Panel, Row, Table
from isoviz.studies.trained import Drawing, TrainedStudy, mean_line

PAPER = IsoLayer.paper
assert PAPER is not None

COMPONENTS: Final = 20
"""K of Figure 2."""
METHODS: Final = ("baseline", "isolayer")
_QUICK = "demo/tiny-bert on 2 demo tasks, 1,000 and 2,000 training rows, 3 epochs, 3 seeds"
_FULL = "bert-base-cased and roberta-large on RTE, CoLA and MRPC, 5 seeds"
SCALES: Final = MappingProxyType({"quick": _QUICK, "full": _FULL})
OF_ALL: Final = (
    "Learning rate, batch size, epochs and patience stand in a report that was not published.",
    "The paper does not give the layer's activation or initialisation. Here it is linear and starts as the identity.",
    "Equation 2 weighs the losses with α, step 4 with one half; they agree at α = 0.5.",
    "Early stopping looks at training rows that the encoder has already fitted: their task loss is near zero, its balanced weight large, "
    "and the layer may stop after a few steps close to the identity.",
    "The start of the running means of the losses is not given, and 0.15 is not the step of the code it is credited to.",
)


def isoscore_rises(evidence: Evidence) -> Judgement:
    """IsoScore of the classifier's input, with the layer minus without."""
    return moved(
        against_baseline(evidence, "isoscore", METHODS[1:]), "IsoScore changes by", ended=not evidence.unfinished
    )


def performance_rises(evidence: Evidence) -> Judgement:
    """The task's metric, with the layer minus without."""
    return moved(
        against_baseline(evidence, primary, METHODS[1:]), "The task's metric changes by", ended=not evidence.unfinished
    )


class _OfLayer(TrainedStudy):
    """Runs of the IsoLayer and none."""

    paper: ClassVar[Paper] = PAPER
    scales: ClassVar[Mapping[str, str]] = SCALES
    grids: ClassVar[tuple[Grid, ...]] = (isobn_grid.LAYER,)

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """Without IsoBN, which only Table 3 compares with."""
        return config.method in METHODS


class IsoLayerTable2(_OfLayer):
    """Performance and IsoScore."""

    slug: ClassVar[str] = "isolayer-table-2"
    title: ClassVar[str] = "Does an IsoLayer help performance and isotropy?"
    place: ClassVar[str] = "Table 2"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "The task's metric and the IsoScore of the classifier's input on the validation set, fine-tuned without and then with an "
        "IsoLayer, and the relative improvement."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        *OF_ALL,
        "The paper does not give the number of seeds; it may be one. Ours are means.",
        "The improvement of performance on MRPC with BERT is printed as 221.2 %, which is that of IsoScore; it is 3.2 %.",
        "An IsoScore of a few thousandths is that of one dominant direction: several times as much is still next to none.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("The IsoLayer raises IsoScore on every task.", isoscore_rises),
        Claim("The IsoLayer improves performance on every task.", performance_rises, about_performance=True),
    )

    def show(self, evidence: Evidence) -> Drawing:
        """The table."""
        rows: list[Row] = []
        for task in evidence.tasks:
            metric = tasks.get(task).primary
            for model in evidence.models:
                subset = evidence.where(model=model, task=task)
                cells = {(m, name): subset.where(method=m).cell(name) for m in METHODS for name in (metric, "isoscore")}
                for method in METHODS:
                    values = [cells[method, name].text(decimals=4) for name in (metric, "isoscore")]
                    rows.append([task_title(task), model, method_title(method), *values])
                gains = [
                    _gain(cells["baseline", name].mean, cells["isolayer", name].mean) for name in (metric, "isoscore")
                ]
                rows.append([task_title(task), model, "improvement", *gains])
        table = Table(
            title="Performance and IsoScore with and without an IsoLayer",
            header=["task", "model", "method", "performance", "IsoScore"],
            rows=rows,
            notes=[
                "mean ± standard deviation over seeds; the improvement is relative, of the means. Performance is the primary metric."
            ],
        )
        numbers = printed.with_measured(evidence, "isolayer", "Table 2", isobn_grid.MODELS)
        compared = [entry for entry in numbers if "relative_improvement" not in entry.what]
        return Drawing(tables=[table], published=printed.titled("IsoLayer", compared))


def _gain(before: float | None, after: float | None) -> str:
    if before is None or after is None or not before > 0:
        return "—"
    return f"{100 * (after / before - 1):+.1f} %".replace("-", "−")


def curve(run: RunRecord) -> tuple[float, ...]:
    """EV_1 … EV_20 of the classifier's input."""
    return run.row.result.isotropy.curve("ev")[:COMPONENTS] if run.row.result else ()


def mean_ev(components: int) -> Callable[[Evidence, str], Mapping[int, float]]:
    """Seed → the mean of the first EV_k."""

    def values(evidence: Evidence, metric: str) -> Mapping[int, float]:
        curves = {run.seed: curve(run)[:components] for run in evidence.finished}
        return {seed: sum(shares) / len(shares) for seed, shares in curves.items() if shares}

    return values


def variance_spreads(evidence: Evidence) -> Judgement:
    """Mean of EV_1 … EV_20, with the layer minus without."""
    shares = against_baseline(evidence, primary, METHODS[1:], values=mean_ev(COMPONENTS))
    return moved(shares, "The mean of EV_1 to EV_20 changes by", direction=-1, ended=not evidence.unfinished)


class IsoLayerFigure2(_OfLayer):
    """Explained variance."""

    slug: ClassVar[str] = "isolayer-figure-2"
    title: ClassVar[str] = "Does an IsoLayer spread the variance?"
    place: ClassVar[str] = "Figure 2"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "Share of the variance of the classifier's input in the first k principal directions, k up to 20, without and with an IsoLayer; "
        "means over seeds."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        *OF_ALL,
        "The paper does not say whether the vectors are centred; equation 1 does not centre them. Here they are centred.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("With the IsoLayer the first directions explain less of the variance on every task.", variance_spreads),
    )

    def show(self, evidence: Evidence) -> Drawing:
        """A panel per task and model, a line with and one without the layer."""
        panels: list[Panel] = []
        for task in evidence.tasks:
            for model in evidence.models:
                series = [
                    mean_line([curve(run) for run in part.finished], method_title(method), method, 1)
                    for method in METHODS
                    for part in [evidence.where(model=model, task=task, method=method)]
                ]
                panels.append(
                    Panel(
                        title=f"{task_title(task)}, {model.rsplit('/', 1)[-1]}",
                        x_axis=Axis(label="k"),
                        y_axis=Axis(label="EV_k", low=0.0, high=1.02),
                        series=[line for line in series if line],
                    )
                )
        figure = Figure(title="Explained variance with and without an IsoLayer", place=self.place,
                        columns=min(3, len(panels)), panels=panels)  # fmt: skip
        return Drawing(figures=[figure])


def median_run(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The finished run with the median EV_1 (the lower median of an even number)."""
    candidates = [(value, run.seed, run) for run in runs if run.finished and (value := run.number("ev_1")) is not None]
    return (
        sorted(candidates, key=lambda candidate: candidate[:2])[(len(candidates) - 1) // 2][2] if candidates else None
    )


def _against_isobn(evidence: Evidence, **options: Any) -> list[Change]:
    return changes(evidence, runs_of("isolayer"), runs_of("isobn", "beta"), **options)


def on_par_with_isobn(evidence: Evidence) -> Judgement:
    """The layer minus IsoBN at its best β."""
    return unchanged(_against_isobn(evidence, printed_in=("isolayer", "Table 3")), "IsoLayer minus IsoBN at its best β")


def spreads_more_than_isobn(evidence: Evidence) -> Judgement:
    """Mean of EV_1 to EV_3: the layer minus IsoBN, below 0 for BERT and above 0 for RoBERTa."""
    roberta = evidence.where(lambda config: "roberta" in config.model)
    bert = evidence.where(lambda config: "roberta" not in config.model)
    opening = "The mean of EV_1 to EV_3 with the IsoLayer minus that with IsoBN at its best β"
    return both(
        *(
            moved(_against_isobn(part, values=mean_ev(3)), opening, direction=direction, ended=not part.unfinished)
            for part, direction in ((bert, -1), (roberta, 1))
            if part.planned
        )
    )


class IsoLayerTable3(_OfLayer):
    """Beside IsoBN."""

    slug: ClassVar[str] = "isolayer-table-3"
    title: ClassVar[str] = "How does the IsoLayer compare with IsoBN?"
    place: ClassVar[str] = "Table 3"
    kind: ClassVar[Literal["figure", "table"]] = "table"
    summary: ClassVar[str] = (
        "Median and standard deviation of the task's metric, and EV_1 to EV_3 of the run with the median EV_1, without a method, with "
        "the IsoLayer, and with IsoBN trained on the same rows."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        *OF_ALL,
        "The printed EV_k of IsoBN are paper 002's, of embeddings before fine-tuning; those of the IsoLayer are of fine-tuned ones. Ours "
        "are all of fine-tuned ones.",
        "In nine of twelve cells the printed EV_k allow no IsoScore as high as that of Table 2, so the two describe different matrices.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("The IsoLayer improves performance on every task.", performance_rises, about_performance=True),
        Claim("The IsoLayer lowers EV_1 on every task.", lambda evidence: moved(
            against_baseline(evidence, "ev_1", METHODS[1:]), "EV_1 changes by", direction=-1, ended=not evidence.unfinished)),
        Claim("The IsoLayer is on par with IsoBN in performance.", on_par_with_isobn, about_performance=True),
        Claim("The IsoLayer “results in better explained variance for all BERT models, while IsoBN results in better explained "
              "variance for the RoBERTa models”.", spreads_more_than_isobn),
    )  # fmt: skip
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"quick": f"{_QUICK}, IsoBN at β = 0.5 and 1", "full": f"{_FULL}, IsoBN at β = 0.25, 0.5 and 1"}
    )

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """All three."""
        return True

    def show(self, evidence: Evidence) -> Drawing:
        """The table."""
        rows: list[Row] = []
        for task in evidence.tasks:
            metric = tasks.get(task).primary
            for model in evidence.models:
                subset = evidence.where(model=model, task=task)
                for method in (*METHODS, "isobn"):
                    part = subset.where(method=method)
                    part = (best(part, metric, "beta") or part) if method == "isobn" else part
                    run = median_run(part.runs)
                    shares = [None if run is None or run.number(f"ev_{k}") is None else wording.number(run.number(f"ev_{k}"))
                             for k in (1, 2, 3)]  # fmt: skip
                    cell = part.cell(metric).text(middle="median")
                    seed = None if run is None else run.seed
                    rows.append([task_title(task), model, method_title(method), cell, *shares, seed])
        table = Table(
            title="Performance and explained variance",
            header=["task", "model", "method", "performance", "EV_1", "EV_2", "EV_3", "seed of EV"],
            rows=rows,
            notes=["median (standard deviation) over seeds; EV_1 to EV_3 are those of one run, the one with the median EV_1. IsoBN is "
                   "that at its best β."],
        )  # fmt: skip
        numbers = printed.with_measured(evidence, "isolayer", "Table 3", isobn_grid.MODELS, middle="median")
        compared = [entry for entry in numbers if "(paper 002)" not in entry.what and ", IsoBN," not in entry.what]
        return Drawing(tables=[table], published=printed.titled("IsoLayer", compared))
