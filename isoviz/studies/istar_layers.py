"""Figures 4, 5 and 6 of I-STAR: what CosReg and I-STAR change in the layers of a fine-tuned encoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from isoviz.config import RunConfig
from isoviz.runs.comparisons import wording
from isoviz.statistics import mean_sd
from isoviz.studies.figures import Reference, Trace, axis, mean_line, panels
from isoviz.studies.grids import NONE, Grid, quick_plans
from isoviz.studies.istar import LAMBDA, MAIN, OF_SENTENCES, SECOND, full_plan, lambda_name, of_lambda
from isoviz.studies.judging import Change, Judgement, moved, trend
from isoviz.studies.records import Evidence, LayerProfile, task_title
from isoviz.studies.result import Row, Table
from isoviz.studies.study import Claim, TrainedStudy

Curve = Callable[[LayerProfile], Sequence[float | None]]
DIMENSION_LAMBDAS: Final = (-5.0, -3.0, 0.0, 3.0, 5.0)
LAYER_LAMBDAS: Final = (-1.0, 0.0, 1.0)

_BOTH_WAYS: Final = (("cosreg", {"lam": (-1.0, 1.0)}), NONE)
COSREG: Final = Grid("istar-cosreg", quick_plans(_BOTH_WAYS, MAIN), (full_plan(_BOTH_WAYS, ("glue/qnli",)),))
"""CosReg both ways."""


def uses(task: str, lams: Sequence[float]) -> Callable[[RunConfig], bool]:
    """From the shared sweep, one task (or those that the user names instead), I-STAR at these λ, and the baseline."""
    elsewhere = {*OF_SENTENCES, "squad", SECOND} - {task}

    def used(config: RunConfig) -> bool:
        lam = config.params.get("lam", 0.0) if config.method == "istar" else 0.0
        return config.task not in elsewhere and config.method != "cosreg" and lam in lams

    return used


def by_seed(evidence: Evidence, lam: float, value: Callable[[LayerProfile], float | None]) -> dict[int, float]:
    """Seed → a number of the layer profile of the finished run with this λ, where both exist."""
    runs = of_lambda(evidence, lam).finished
    values = {run.seed: value(run.layers) for run in runs if run.layers is not None}
    return {seed: number for seed, number in values.items() if number is not None}


def _drawing(
    title: str, lams: Sequence[float], curve: Curve, axes: tuple[str, str], first: int = 0, spread: bool = True
) -> dict[str, Any]:
    """A line per λ as figure, and its ends as table."""

    def line(part: Evidence, lam: float) -> list[Trace]:
        curves = [curve(run.layers) for run in part.finished if run.layers is not None]
        return mean_line(curves, lambda_name(lam), lambda_name(lam), first, spread=spread, value=lam)

    def content(runs: Evidence, metric: str) -> tuple[list[Trace], list[Reference]]:
        return [trace for lam in lams for trace in line(of_lambda(runs, lam), lam)], []

    def ends(evidence: Evidence) -> Table:
        rows: list[Row] = []
        for task, model, runs in evidence.each("task", "model"):
            for lam in lams:
                part = of_lambda(runs, lam)
                measured = sum(run.layers is not None for run in part.finished)
                numbers: list[Row] = [[y[0], y[-1], max(y, key=abs)] for y in (trace["y"] for trace in line(part, lam))]
                name = f"{task_title(task)}, {model.rsplit('/', 1)[-1]}"
                count = f"{measured} of {len(part.planned)}"
                rows.append([name, lambda_name(lam), count, *(numbers[0] if numbers else [None] * 3)])
        header = ["task and model", "penalty", "runs measured", "first", "last", "largest"]
        return Table(title=f"{title}: ends of the lines", header=header, rows=rows, notes=["means over seeds"])

    return {"figure": panels(title, axes[0], axis(axes[1]), content), "tables": (ends,), "profiles": True}


# ---------------------------------------------------------------------------------------------------- Figure 4


def _last_star(profile: LayerProfile) -> float | None:
    return profile.isoscore_star[-1]


def cosreg_centres(evidence: Evidence) -> Judgement:
    """Length of the mean vector of the last layer's tokens: CosReg at λ = 1 minus none, and none minus λ = −1."""
    without, pushed, pulled = (
        by_seed(evidence, lam, lambda profile: math.hypot(*profile.mean_activation)) for lam in (0.0, 1.0, -1.0)
    )
    differences = [Change.of("λ = 1 minus none", pushed, without), Change.of("none minus λ = −1", without, pulled)]
    return moved(differences, "The mean vector's length", direction=-1)


def cosreg_leaves_isotropy(evidence: Evidence) -> Judgement:
    """IsoScore* of the last layer: CosReg at λ = 1 minus none."""
    without = by_seed(evidence, 0.0, _last_star)
    level = mean_sd(without.values())[0]
    opening = f"IsoScore* of the last layer, {wording.number(level)} without a penalty, changes by"
    return moved([Change.of("CosReg at λ = 1", by_seed(evidence, 1.0, _last_star), without)], opening, direction=-1)


FIGURE_4: Final = TrainedStudy(
    slug="istar-figure-4",
    title="Does CosReg change more than the mean?",
    summary="The mean of each dimension over the last layer's tokens of the validation set, after fine-tuning with CosReg at λ = −1 and "
    "1 and without a penalty.",
    open_points=(
        "The paper does not say which vectors are averaged; here all unpadded tokens of the last layer.",
        "The printed IsoScore* values of CosReg, 0.004 to 0.007, are of SST-2, the figure is of QNLI.",
        "Single dimensions are far larger than the rest in the paper's encoders, so the axis hides most of them.",
    ),
    claims=(
        Claim("CosReg at λ = 1 moves the mean towards zero, and at λ = −1 away from it.", cosreg_centres),
        Claim("CosReg does not make representations more isotropic.", cosreg_leaves_isotropy),
    ),
    quick="demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, CosReg at λ = −1 and 1 and none, 3 seeds",
    full="ALBERT, BERT and DistilBERT on QNLI, CosReg at λ = −1 and 1 and none, 5 seeds",
    grid=COSREG,
    **_drawing(
        "Mean activation of each dimension",
        LAYER_LAMBDAS,
        lambda profile: profile.mean_activation,
        ("dimension", "mean activation"),
        first=1,
        spread=False,
    ),
)

# ---------------------------------------------------------------------------------------------------- Figure 5


FIGURE_5: Final = TrainedStudy(
    slug="istar-figure-5",
    title="Does isotropy change the intrinsic dimension?",
    summary="TwoNN intrinsic dimension of the [CLS] vectors of the validation set in every layer, after I-STAR at λ = −5, −3, 3 and 5 and "
    "without a penalty.",
    open_points=(
        "The paper's TwoNN library counted from 0 until 2024, which lowers its values by up to a few percent. Here it counts from 1.",
        "TwoNN falls short in many dimensions: it gives 47 for 800 points of a 100-dimensional Gaussian.",
        "The embedding output (layer 0) has the same [CLS] vector for every text, so it has no dimension.",
    ),
    claims=(
        Claim(
            "A larger λ raises the intrinsic dimension of the last layer.",
            trend(
                "of λ with the last layer's intrinsic dimension",
                1,
                lambda runs, metric: (
                    (lam, mean_sd(by_seed(runs, lam, lambda profile: profile.twonn[-1]).values())[0])
                    for lam in DIMENSION_LAMBDAS
                ),
            ),
        ),
    ),
    quick="demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, λ at 4 values and none, 3 seeds (of Figure 3)",
    full="ALBERT, BERT and DistilBERT on SST-2, λ at 4 values and none, 5 seeds; runs of Figure 3",
    grid=LAMBDA,
    uses=uses("glue/sst2", DIMENSION_LAMBDAS),
    **_drawing(
        "Intrinsic dimension by layer", DIMENSION_LAMBDAS, lambda profile: profile.twonn, ("layer", "TwoNN of [CLS]")
    ),
)

# ---------------------------------------------------------------------------------------------------- Figure 6


def _stars(evidence: Evidence, lam: float) -> dict[int, tuple[float | None, ...]]:
    """Seed → IsoScore* of each layer without the embedding output."""
    runs = of_lambda(evidence, lam).finished
    return {run.seed: run.layers.isoscore_star[1:] for run in runs if run.layers is not None}


def _sides(curves: Mapping[int, Sequence[float | None]]) -> tuple[dict[int, float], dict[int, float]]:
    """Seed → the mean over the earlier half of the layers, and over the later half, of the seeds that have both."""
    cuts = {seed: len(layers) // 2 for seed, layers in curves.items()}
    early = {seed: mean_sd(curves[seed][:cut])[0] for seed, cut in cuts.items()}
    late = {seed: mean_sd(curves[seed][-cut:])[0] for seed, cut in cuts.items()}
    both = [seed for seed in curves if early[seed] is not None and late[seed] is not None]
    return {seed: early[seed] or 0.0 for seed in both}, {seed: late[seed] or 0.0 for seed in both}


def early_layers_move_most(evidence: Evidence) -> Judgement:
    """The change of IsoScore* from none to λ = 1: earlier half of the layers minus later half."""
    without, positive = _stars(evidence, 0.0), _stars(evidence, 1.0)
    moves = {
        seed: [
            None if a is None or b is None else abs(a - b) for a, b in zip(positive[seed], without[seed], strict=True)
        ]
        for seed in without.keys() & positive.keys()
    }
    early, late = _sides(moves)
    a, b = (wording.number(mean_sd(half.values())[0]) for half in (early, late))
    opening = f"λ = 1 moves IsoScore* by {a} in the earlier half of the layers and by {b} in the later half"
    return moved([Change.of("difference", early, late)], opening)


def last_layer_stays(evidence: Evidence) -> Judgement:
    """IsoScore* at λ = 1: the later half of the layers minus the earlier half."""
    early, late = _sides(_stars(evidence, 1.0))
    return moved([Change.of("later minus earlier layers", late, early)], "IsoScore* at λ = 1", direction=-1)


FIGURE_6: Final = TrainedStudy(
    slug="istar-figure-6",
    title="Which layers does I-STAR change?",
    summary="IsoScore* (ζ = 0.2) of each layer's tokens on the validation set, after I-STAR at λ = −1 and 1 and without a penalty.",
    open_points=(
        "The paper does not say whether Σ_S is that of the layer or of all layers. Here it is that of the layer, from training tokens.",
        "The number of seeds behind the lines is not given.",
    ),
    claims=(
        Claim("I-STAR changes the isotropy of early layers most.", early_layers_move_most),
        Claim("Later layers stay less isotropic than early ones even at λ = 1.", last_layer_stays),
    ),
    quick="demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, λ = −1, 1 and none, 3 seeds (of Figure 3)",
    full="ALBERT, BERT and DistilBERT on QNLI, λ = −1, 1 and none, 5 seeds; runs of Figure 3",
    grid=LAMBDA,
    uses=uses("glue/qnli", LAYER_LAMBDAS),
    **_drawing(
        "IsoScore* by layer", LAYER_LAMBDAS, lambda profile: profile.isoscore_star, ("layer", "IsoScore*, ζ = 0.2")
    ),
)

STUDIES: Final = (FIGURE_4, FIGURE_5, FIGURE_6)
