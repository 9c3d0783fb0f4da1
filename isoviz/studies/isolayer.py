"""Tables 2 and 3 and Figure 2 of IsoLayer: performance, IsoScore and explained variance with and without the layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from isoviz.config import RunConfig
from isoviz.runs.comparisons import wording
from isoviz.runs.naming import method_title
from isoviz.runs.planning import MethodChoice
from isoviz.studies.figures import Reference, Trace, axis, mean_line, panels
from isoviz.studies.grids import NONE, Grid, quick_plans, recipe
from isoviz.studies.isobn import FULL_ISOBN, MODELS, QUICK_ISOBN, full_plans
from isoviz.studies.judging import Change, Judgement, against_baseline, both, changes, moved, primary, runs, unchanged
from isoviz.studies.published import Compared, Printed
from isoviz.studies.records import Evidence, RunRecord
from isoviz.studies.result import Row
from isoviz.studies.study import Claim, TrainedStudy
from isoviz.studies.tables import SPREAD, rows_table

COMPONENTS: Final = 20
"""K of Figure 2."""
METHODS: Final = ("baseline", "isolayer")
QUICK: Final = "demo/tiny-bert on 2 demo tasks, 1,000 and 2,000 training rows, 3 epochs, 3 seeds"
FULL: Final = "bert-base-cased and roberta-large on RTE, CoLA and MRPC, 5 seeds"
OF_ALL: Final = (
    "Learning rate, batch size, epochs and patience stand in a report that was not published.",
    "The paper does not give the layer's activation or initialisation. Here it is linear and starts as the identity.",
    "Equation 2 weighs the losses with α, step 4 with one half; they agree at α = 0.5.",
    "Early stopping looks at training rows that the encoder has already fitted: their task loss is near zero, its balanced weight large, "
    "and the layer may stop after a few steps close to the identity.",
    "The start of the running means of the losses is not given, and 0.15 is not the step of the code it is credited to.",
)
_LAYER: Final[MethodChoice] = ("isolayer", {})
LAYER: Final = Grid(
    "isolayer",
    quick_plans((NONE, _LAYER, QUICK_ISOBN), "demo/acceptability", "demo/paraphrase"),
    full_plans(
        ("glue/rte", "glue/cola", "glue/mrpc"),
        recipe("isolayer", epochs=10, max_length=256),
        NONE,
        _LAYER,
        FULL_ISOBN,
    ),
)
"""The IsoLayer, none, and IsoBN trained on the same rows."""


def _without_isobn(config: RunConfig) -> bool:
    """Only Table 3 compares with IsoBN."""
    return config.method in METHODS


def _change(
    metric: str | Callable[[str], str], opening: str, direction: int = 1, **options: Any
) -> Callable[[Evidence], Judgement]:
    """Whether a number rises (or falls) with the layer on every task."""

    def judge(evidence: Evidence) -> Judgement:
        differences = against_baseline(evidence, metric, METHODS[1:], **options)
        return moved(differences, opening, direction=direction, ended=not evidence.unfinished)

    return judge


_IMPROVES: Final = Claim(
    "The IsoLayer improves performance on every task.",
    _change(primary, "The task's metric changes by"),
    about_performance=True,
)

# ---------------------------------------------------------------------------------------------------- Table 2


def _performance_rows(runs: Evidence, metric: str) -> Iterator[Row]:
    """A row with and one without the layer, and the relative improvement of the means."""
    cells = {method: [runs.where(method=method).cell(name) for name in (metric, "isoscore")] for method in METHODS}
    for method, of_method in cells.items():
        yield [method_title(method), *(cell.text(decimals=4) for cell in of_method)]
    yield ["improvement", *(_gain(*(cell.mean for cell in pair)) for pair in zip(*cells.values(), strict=True))]


def _gain(before: float | None, after: float | None) -> str:
    if before is None or after is None or not before > 0:
        return "—"
    return f"{100 * (after / before - 1):+.1f} %".replace("-", "−")


def _own_numbers(cell: Printed, evidence: Evidence) -> Evidence | None:
    """Neither relative improvements nor what the paper copies from IsoBN's."""
    copied = "relative_improvement" in cell.metric or "(paper 002)" in cell.label or cell.label == "IsoBN"
    return None if copied else evidence.where(method=cell.method)


TABLE_2: Final = TrainedStudy(
    slug="isolayer-table-2",
    title="Does an IsoLayer help performance and isotropy?",
    summary="The task's metric and the IsoScore of the classifier's input on the validation set, fine-tuned without and then with an "
    "IsoLayer, and the relative improvement.",
    open_points=(
        *OF_ALL,
        "The paper does not give the number of seeds; it may be one. Ours are means.",
        "The improvement of performance on MRPC with BERT is printed as 221.2 %, which is that of IsoScore; it is 3.2 %.",
        "An IsoScore of a few thousandths is that of one dominant direction: several times as much is still next to none.",
    ),
    claims=(
        Claim("The IsoLayer raises IsoScore on every task.", _change("isoscore", "IsoScore changes by")),
        _IMPROVES,
    ),
    quick=QUICK,
    full=FULL,
    grid=LAYER,
    uses=_without_isobn,
    tables=(
        rows_table(
            "Performance and IsoScore with and without an IsoLayer",
            ["method", "performance", "IsoScore"],
            _performance_rows,
            f"{SPREAD}; the improvement is relative, of the means. Performance is the primary metric.",
        ),
    ),
    compared=Compared(MODELS, _own_numbers),
)

# ---------------------------------------------------------------------------------------------------- Figure 2


def _mean_ev(components: int) -> Callable[[Evidence, str], Mapping[int, float]]:
    """Seed → the mean of the first EV_k."""

    def values(evidence: Evidence, metric: str) -> Mapping[int, float]:
        curves = {run.seed: run.curve(components) for run in evidence.finished}
        return {seed: sum(shares) / len(shares) for seed, shares in curves.items() if shares}

    return values


def _variance_lines(runs: Evidence, metric: str) -> tuple[list[Trace], list[Reference]]:
    """A line with and one without the layer."""
    curves = {slug: [run.curve(COMPONENTS) for run in runs.where(method=slug).finished] for slug in METHODS}
    return [line for slug in METHODS for line in mean_line(curves[slug], method_title(slug), slug, 1)], []


FIGURE_2: Final = TrainedStudy(
    slug="isolayer-figure-2",
    title="Does an IsoLayer spread the variance?",
    summary="Share of the variance of the classifier's input in the first k principal directions, k up to 20, without and with an "
    "IsoLayer; means over seeds.",
    open_points=(
        *OF_ALL,
        "The paper does not say whether the vectors are centred; equation 1 does not centre them. Here they are centred.",
    ),
    claims=(
        Claim(
            "With the IsoLayer the first directions explain less of the variance on every task.",
            _change(primary, "The mean of EV_1 to EV_20 changes by", direction=-1, values=_mean_ev(COMPONENTS)),
        ),
    ),
    quick=QUICK,
    full=FULL,
    grid=LAYER,
    uses=_without_isobn,
    figure=panels("Explained variance with and without an IsoLayer", "k", axis("EV_k", 0.0, 1.02), _variance_lines),
)

# ---------------------------------------------------------------------------------------------------- Table 3


def median_run(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The finished run with the median EV_1 (the lower median of an even number)."""
    candidates = [(value, run.seed, run) for run in runs if run.finished and (value := run.number("ev_1")) is not None]
    in_order = sorted(candidates, key=lambda candidate: candidate[:2])
    return in_order[(len(in_order) - 1) // 2][2] if in_order else None


def _against_isobn(evidence: Evidence, **options: Any) -> list[Change]:
    return changes(evidence, runs(method="isolayer"), runs("beta", method="isobn"), **options)


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
            moved(_against_isobn(part, values=_mean_ev(3)), opening, direction=direction, ended=not part.unfinished)
            for part, direction in ((bert, -1), (roberta, 1))
            if part.planned
        )
    )


def _variance_rows(runs: Evidence, metric: str) -> Iterator[Row]:
    """Median performance of each method, and EV_1 to EV_3 of one run."""
    for method in (*METHODS, "isobn"):
        part = runs.where(method=method)
        part = (part.best(metric, "beta") or part) if method == "isobn" else part
        run = median_run(part.runs)
        shares = [run.number(f"ev_{k}") if run else None for k in (1, 2, 3)]
        yield [
            method_title(method),
            part.cell(metric).text(middle="median"),
            *(None if share is None else wording.number(share) for share in shares),
            run.seed if run else None,
        ]


TABLE_3: Final = TrainedStudy(
    slug="isolayer-table-3",
    title="How does the IsoLayer compare with IsoBN?",
    summary="Median and standard deviation of the task's metric, and EV_1 to EV_3 of the run with the median EV_1, without a method, with "
    "the IsoLayer, and with IsoBN trained on the same rows.",
    open_points=(
        *OF_ALL,
        "The printed EV_k of IsoBN are paper 002's, of embeddings before fine-tuning; those of the IsoLayer are of fine-tuned ones. Ours "
        "are all of fine-tuned ones.",
        "In nine of twelve cells the printed EV_k allow no IsoScore as high as that of Table 2, so the two describe different matrices.",
    ),
    claims=(
        _IMPROVES,
        Claim("The IsoLayer lowers EV_1 on every task.", _change("ev_1", "EV_1 changes by", direction=-1)),
        Claim("The IsoLayer is on par with IsoBN in performance.", on_par_with_isobn, about_performance=True),
        Claim(
            "The IsoLayer “results in better explained variance for all BERT models, while IsoBN results in better explained "
            "variance for the RoBERTa models”.",
            spreads_more_than_isobn,
        ),
    ),
    quick=f"{QUICK}, IsoBN at β = 0.5 and 1",
    full=f"{FULL}, IsoBN at β = 0.25, 0.5 and 1",
    grid=LAYER,
    tables=(
        rows_table(
            "Performance and explained variance",
            ["method", "performance", "EV_1", "EV_2", "EV_3", "seed of EV"],
            _variance_rows,
            "median (standard deviation) over seeds; EV_1 to EV_3 are those of one run, the one with the median EV_1. IsoBN is "
            "that at its best β.",
        ),
    ),
    compared=Compared(MODELS, _own_numbers, "median"),
)

STUDIES: Final = (TABLE_2, TABLE_3, FIGURE_2)
