"""I-STAR's tables 1 and 2 and figures 3, 7 and 8: performance under penalties of every sign and strength."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final

from isoviz.config import RunConfig
from isoviz.runs.naming import setting
from isoviz.runs.planning import MethodChoice
from isoviz.studies.figures import Reference, Trace, line, panels, points
from isoviz.studies.grids import FIVE, NONE, Grid, Plan, quick_plans, recipe
from isoviz.studies.judging import (
    TOO_FEW,
    Judgement,
    Numbers,
    changes,
    detectable,
    moved,
    primary,
    runs,
    signs_of_groups,
    trend,
)
from isoviz.studies.published import Compared, at_best
from isoviz.studies.records import Evidence, task_title
from isoviz.studies.result import Row, Table
from isoviz.studies.study import Claim, TrainedStudy
from isoviz.studies.tables import SPREAD, rows_table, tasks_table

MODELS: Final = MappingProxyType(
    {
        "albert/albert-base-v2": "ALBERT",
        "google-bert/bert-base-cased": "BERT",
        "distilbert/distilbert-base-cased": "DistilBERT",
    }
)
"""The paper's encoders on the hub → their names in its tables."""
OF_SENTENCES: Final = (*(f"glue/{name}" for name in ("sst2", "qnli", "rte", "mrpc", "qqp", "cola", "stsb")), "sst5")
"""All of the paper's tasks but SQuAD, which has settings of its own."""
LAMBDAS: Final = (-5.0, -3.0, -1.0, 0.5, 1.0, 3.0, 5.0)
"""Of Figure 3; the search of Table 2 leaves 0.5 out."""
ALL_ZETAS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
ZETA: Final = 0.2
MAIN, SECOND = "demo/acceptability", "demo/similarity"
"""The quick scale: one task of single texts, one of pairs."""
STAR: Final = "isoscore_star"

# ---------------------------------------------------------------------------------------------------- runs

_FULL: Final = recipe("istar")
_RATE: Final = 3e-5


def full_plan(methods: tuple[MethodChoice, ...], tasks: tuple[str, ...] = OF_SENTENCES, **settings: Any) -> Plan:
    """The paper's encoders and settings."""
    return Plan(tuple(MODELS), tasks, methods, FIVE, _RATE, {**_FULL, **settings})


def _with_squad(*methods: MethodChoice) -> tuple[Plan, ...]:
    return full_plan(methods), full_plan(methods, ("squad",), max_length=384, doc_stride=128)


_SWEEP: Final[tuple[MethodChoice, ...]] = (
    NONE,
    ("istar", {"lam": LAMBDAS, "zeta": ZETA}),
    ("cosreg", {"lam": 1.0}),
)
LAMBDA: Final = Grid("istar-lambda", quick_plans(_SWEEP, MAIN, SECOND), _with_squad(*_SWEEP))
"""Plain fine-tuning, I-STAR at every λ, and CosReg, on every task."""

SEARCH: Final = Grid(
    "istar-search",
    quick_plans([("istar", {"lam": (-5.0, -1.0, 1.0, 5.0), "zeta": (0.2, 0.8)})], MAIN),
    _with_squad(("istar", {"lam": (-5.0, -3.0, -1.0, 1.0, 3.0, 5.0), "zeta": (0.2, 0.4, 0.6, 0.8)})),
)
"""λ × ζ."""

_ALL_ZETAS: Final[MethodChoice] = ("istar", {"lam": -1.0, "zeta": ALL_ZETAS})
SHRINKAGE: Final = Grid("istar-zeta", quick_plans([_ALL_ZETAS], MAIN), (full_plan((_ALL_ZETAS,), ("glue/rte",)),))
"""Every ζ at one λ."""

OPTIMA_ON_COLA: Final = MappingProxyType(
    {
        "albert/albert-base-v2": (12, -1.0, 0.8),
        "google-bert/bert-base-cased": (12, -1.0, 0.8),
        "distilbert/distilbert-base-cased": (6, -3.0, 0.4),
    }
)
"""Layers of each encoder, and its λ and ζ of Table 2, which Figure 8 keeps."""


def _layers(depth: int, lam: float, zeta: float) -> tuple[MethodChoice, ...]:
    return (("istar", {"lam": lam, "zeta": zeta, "layer": tuple(range(depth + 1))}),)


LAYERS: Final = Grid(
    "istar-layers",
    quick_plans(_layers(4, -1.0, ZETA), MAIN),
    tuple(
        Plan((model,), ("glue/cola",), _layers(*optimum), FIVE, _RATE, _FULL)
        for model, optimum in OPTIMA_ON_COLA.items()
    ),
)
"""I-STAR on one layer at a time; layer 0 is all of them together."""


def of_lambda(evidence: Evidence, lam: float) -> Evidence:
    """The runs with this λ; 0 is plain fine-tuning."""
    return evidence.where(lam=lam) if lam else evidence.where(method="baseline")


def lambda_name(lam: float) -> str:
    """`λ = −1`."""
    return f"λ = {setting(lam)}" if lam else "no penalty"


# ---------------------------------------------------------------------------------------------------- Figure 3


def _points(evidence: Evidence, metric: str) -> tuple[list[Trace], list[Reference]]:
    """One point per λ of a model on a task, with the spread over seeds both ways; plain fine-tuning is λ = 0."""
    parts = ((lam, of_lambda(evidence, lam)) for lam in (0.0, *LAMBDAS))
    ends = ((lam, part.cell(STAR).ends, part.cell(metric).ends) for lam, part in parts)
    return points("λ", [(lambda_name(lam), lam, x, y) for lam, x, y in ends if x and y]), []


def _of_each_lambda(part: Evidence, x: str | None, y: str) -> Iterator[Numbers]:
    """λ (or a number) and another number of each setting of which a collapse spared most runs: a few are no picture of it."""
    for lam in (0.0, *LAMBDAS):
        chosen = of_lambda(part, lam)
        cell = chosen.cell(y)
        if len(cell.values) > len(cell.excluded):
            yield (chosen.cell(x).mean if x else lam), cell.mean


FIGURE_3: Final = TrainedStudy(
    slug="istar-figure-3",
    title="Does less isotropy mean better performance?",
    summary="IsoScore* against the task's metric for I-STAR at λ from −5 to 5, with ζ = 0.2 and error bars over seeds both ways. "
    "Negative λ makes the token vectors less isotropic.",
    open_points=(
        "Learning rate, batch size and number of epochs were searched per model and task; the values that were chosen are not printed. "
        "Here: 3e-5, 32 and 3 at full scale.",
        "The text accumulates gradients over two batches, the code does not. Here: no accumulation.",
        "λ = 0 is not in the figure. It is added here, because it is what the others are compared with.",
        "The authors' code counts padding vectors as points. Here they are left out.",
    ),
    claims=(
        Claim(
            "Isotropy and performance are inversely related.",
            trend("of IsoScore* with performance", -1, lambda part, metric: _of_each_lambda(part, STAR, metric)),
            about_performance=True,
        ),
        Claim(
            "Positive λ makes representations more isotropic, negative λ less isotropic.",
            trend("of λ with IsoScore*", 1, lambda part, metric: _of_each_lambda(part, None, STAR)),
        ),
    ),
    quick="demo/tiny-bert on 2 demo tasks, 1,000 and 1,500 training rows, 3 epochs, λ at 7 values and none, 3 seeds",
    full="ALBERT, BERT and DistilBERT on 9 tasks, λ at 7 values and none, 5 seeds",
    grid=LAMBDA,
    uses=lambda config: config.method != "cosreg",
    figure=panels("IsoScore* against performance", "IsoScore*, ζ = 0.2", None, _points, between="\n"),
    tables=(
        rows_table(
            "IsoScore* and performance by λ",
            ["λ", "IsoScore*", "performance"],
            lambda runs, metric: (
                [setting(lam) if lam else "none", *of_lambda(runs, lam).texts(STAR, metric)] for lam in (0.0, *LAMBDAS)
            ),
            f"{SPREAD}; performance is the task's primary metric.",
        ),
    ),
)

# ---------------------------------------------------------------------------------------------------- Table 1


def is_negative(config: RunConfig) -> bool:
    """I-STAR with λ below 0, which makes representations less isotropic."""
    return config.method == "istar" and float(config.params["lam"]) < 0


def negative_wins(evidence: Evidence) -> Judgement:
    """Is some negative λ better than plain fine-tuning beyond chance on most tasks? Corrected over all λ and tasks."""
    by_lam = [
        changes(evidence, runs(method="istar", lam=lam), runs(method="baseline"), name=lambda_name(lam))
        for lam in evidence.where(is_negative).distinct("lam")
    ]
    by_task = list(zip(*by_lam, strict=True))
    every = [change for of_task in by_task for change in of_task]
    if not any(change.tested for change in every):
        return TOO_FEW
    of_tasks = signs_of_groups(by_task)
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


def cosreg_loses(evidence: Evidence) -> Judgement:
    """The best negative λ minus CosReg, by task."""
    differences = changes(evidence, runs("lam", test=is_negative), runs(method="cosreg"))
    return moved(differences, "The best negative λ (the best of several is optimistic) minus CosReg", of="most")


TABLE_1: Final = TrainedStudy(
    slug="istar-table-1",
    title="Does I-STAR beat plain fine-tuning and CosReg?",
    summary="Each task's metric with I-STAR at its best negative λ, without a penalty, and with CosReg at λ = 1; mean and standard "
    "deviation over seeds.",
    open_points=(
        "λ, ζ, learning rate, batch size and epochs were tuned for I-STAR; the paper does not say whether the baselines were too.",
        "They were chosen on the validation set that the table reports, which favours the method with more settings to choose from.",
        "The text has Matthews' and Pearson's correlation for CoLA and STS-B; the authors' code computes accuracy only.",
    ),
    claims=(
        Claim("I-STAR with a negative λ improves on plain fine-tuning on most tasks.", negative_wins, True),
        Claim("I-STAR with a negative λ improves on CosReg on most tasks.", cosreg_loses, about_performance=True),
    ),
    quick="demo/tiny-bert on 2 demo tasks, 1,000 and 1,500 training rows, 3 epochs, 3 seeds; the runs of Figure 3 and CosReg",
    full="ALBERT, BERT and DistilBERT on 9 tasks, 5 seeds; the runs of Figure 3 and CosReg",
    grid=LAMBDA,
    uses=lambda config: config.method != "istar" or float(config.params["lam"]) < 0,
    tables=(
        tasks_table(
            "Performance of I-STAR, plain fine-tuning and CosReg",
            {"istar": ("I-STAR", "lam"), "baseline": ("Base", ""), "cosreg": ("CosReg", "")},
            f"{SPREAD}. The λ of an I-STAR cell is the best of the negative ones on that task.",
        ),
    ),
    compared=Compared(MODELS, at_best(istar="lam")),
)

# ---------------------------------------------------------------------------------------------------- Table 2


def optimum_is_negative(evidence: Evidence) -> Judgement:
    """The best negative λ minus the best positive λ, each with its best ζ, by task."""

    negative = runs("lam", "zeta", test=lambda run: float(run.params["lam"]) < 0)
    positive = runs("lam", "zeta", test=lambda run: float(run.params["lam"]) > 0)
    sides = [
        (task, [side(part, primary(task)) for side in (negative, positive)])
        for _, task, part in evidence.each("model", "task")
    ]
    chosen = [
        f"{task_title(task)} λ = {' minus λ = '.join(setting(part.planned[0].params['lam']) for part in parts if part)}"
        for task, parts in sides
        if all(parts)
    ]
    opening = f"Best negative minus best positive λ ({'; '.join(chosen)})"
    return moved(changes(evidence, negative, positive), opening)


def _best_setting(runs: Evidence, metric: str) -> list[Row]:
    part = runs.best(metric, "lam", "zeta")
    if part is None:
        return [[None, None, "—"]]
    return [[*(setting(part.planned[0].params[name]) for name in ("lam", "zeta")), part.cell(metric).text()]]


def _every_setting(evidence: Evidence) -> Table:
    zetas = evidence.distinct("zeta")
    rows: list[Row] = [
        [model, task_title(task), setting(lam), *(runs.where(zeta=zeta).cell(primary(task)).text() for zeta in zetas)]
        for model, task, lam, runs in evidence.each("model", "task", "lam")
    ]
    header = ["model", "task", "λ", *(f"ζ = {setting(zeta)}" for zeta in zetas)]
    return Table(title="Performance at every λ and ζ", header=header, rows=rows, notes=[f"{SPREAD}."])


TABLE_2: Final = TrainedStudy(
    slug="istar-table-2",
    title="Which λ and ζ are best?",
    summary="For each model and task, the λ and ζ with the highest mean of the task's metric, and how clear the choice is.",
    open_points=(
        "The paper does not give the number of seeds behind each choice.",
        "ALBERT's average ζ is printed as 0.36; its nine values average 0.378.",
        "At another ζ the same λ pulls less or more: the penalty's gradient scales with 1 − ζ.",
    ),
    claims=(Claim("Every optimal λ is negative.", optimum_is_negative, about_performance=True),),
    quick="demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, λ at 4 values, ζ at 2, 3 seeds",
    full="ALBERT, BERT and DistilBERT on 9 tasks, λ at 6 values, ζ at 4, 5 seeds",
    grid=SEARCH,
    tables=(
        rows_table(
            "Best λ and ζ",
            ["best λ", "best ζ", "performance"],
            _best_setting,
            "The best of several settings on the rows that it was chosen by: optimistic.",
            by=("model", "task"),
        ),
        _every_setting,
    ),
)

# ---------------------------------------------------------------------------------------------------- Figures 7 and 8


def _against(name: str, symbol: str, title: str, apart: int | None = None) -> dict[str, Any]:
    """Performance against a parameter as figure and table; the value `apart` is a dashed line instead of a place on the axis."""

    def content(runs: Evidence, metric: str) -> tuple[list[Trace], list[Reference]]:
        references: list[Reference] = []
        if apart is not None:
            together: dict[str, Any] = {name: apart}
            mean = runs.where(**together).cell(metric).mean
            references = [] if mean is None else [("all layers together", "y", mean)]
        elif selected := runs.best(metric, name):
            at = float(selected.planned[0].params[name])
            references = [(f"best {symbol}", "x", at)]
        # values without a finished run are gaps
        values = [value for value in runs.distinct(name) if value != apart]
        means = [(float(value), ends) for value in values if (ends := runs.where(**{name: value}).cell(metric).ends)]
        return [line("I-STAR", "istar", *zip(*means, strict=True))] if means else [], references

    def rows(runs: Evidence, metric: str) -> Iterator[Row]:
        for value, part in runs.each(name):
            yield ["all" if value == apart else setting(value), part.cell(metric).text()]

    return {
        "figure": panels(title, symbol, None, content),
        "tables": (rows_table(title, [symbol, "performance"], rows, f"{SPREAD}."),),
    }


def inner_zeta_is_best(evidence: Evidence) -> Judgement:
    """The best ζ between 0 and 1, minus ζ = 0 and minus ζ = 1."""
    inner = runs("zeta", test=lambda config: 0 < float(config.params["zeta"]) < 1)
    differences = [
        change for end in (0.0, 1.0) for change in changes(evidence, inner, runs(zeta=end), name=f"minus ζ = {end:g}")
    ]
    return moved(differences, "The best ζ between 0 and 1 (the best of several is optimistic)")


FIGURE_7: Final = TrainedStudy(
    slug="istar-figure-7",
    title="How much shrinkage does I-STAR need?",
    summary="The task's metric against ζ, the weight of Σ_S, from 0 (the batch alone) to 1 (Σ_S alone), at one negative λ.",
    open_points=(
        "At ζ = 1 the penalty has a value but no gradient, so that end is plain fine-tuning.",
        "The gradient scales with 1 − ζ: a line over ζ at one λ compares penalties of different strength.",
        "λ is that of the paper's Table 2, −1 for all three encoders on RTE; other hyperparameters are not printed.",
    ),
    claims=(Claim("The best ζ lies strictly between 0 and 1.", inner_zeta_is_best, about_performance=True),),
    quick="demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, ζ at 6 values, λ = −1, 3 seeds",
    full="ALBERT, BERT and DistilBERT on RTE, ζ at 6 values, λ = −1, 5 seeds",
    grid=SHRINKAGE,
    **_against("zeta", "ζ", "Performance against ζ"),
)


def a_layer_beats_all(evidence: Evidence) -> Judgement:
    """Each single layer minus all layers together."""
    differences = [
        change
        for layer in evidence.distinct("layer")
        if layer
        for change in changes(evidence, runs(layer=layer), runs(layer=0), name=f"layer {layer}")
    ]
    return moved(differences, "One layer minus all together", of="any")


def no_trend_over_layers(evidence: Evidence) -> Judgement:
    """Spearman's ρ of the layer's number with performance; a clear one is a pattern, its absence shows none."""
    by_layer = trend(
        "of the layer's number with performance",
        1,
        lambda runs, metric: ((float(layer), part.cell(metric).mean) for layer, part in runs.each("layer") if layer),
    )
    outcome, sentence = by_layer(evidence)
    return ("cannot tell" if outcome == "cannot tell" else "not held"), sentence


FIGURE_8: Final = TrainedStudy(
    slug="istar-figure-8",
    title="Does it matter which layer I-STAR acts on?",
    summary="The task's metric with the penalty on one layer's tokens at a time, and with all layers' together as a dashed line.",
    open_points=(
        "λ and ζ are those that Table 2 found best for all layers together, which favours the dashed line.",
        "The embedding output is not among the layers.",
    ),
    claims=(
        Claim("A penalty on a single layer can beat the one on all layers.", a_layer_beats_all, about_performance=True),
        Claim("No consistent pattern emerges over the layers.", no_trend_over_layers, about_performance=True),
    ),
    quick="demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, 4 layers and all together, λ = −1, 3 seeds",
    full="ALBERT, BERT and DistilBERT on CoLA, every layer and all together, λ and ζ of Table 2, 5 seeds",
    grid=LAYERS,
    **_against("layer", "layer", "Performance against the penalised layer", apart=0),
)

STUDIES: Final = (TABLE_1, TABLE_2, FIGURE_3, FIGURE_7, FIGURE_8)
