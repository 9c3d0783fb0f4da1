"""Figures 4, 5 and 6 of I-STAR: what CosReg and I-STAR change in the layers of a fine-tuned encoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal

from isoviz.comparisons import wording
from isoviz.config import RunConfig
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import setting
from isoviz.statistics import mean_sd
from isoviz.studies import istar_grids as grids
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.istar_lambda import PAPER
from isoviz.studies.judging import Change, goes_with, moved
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.records import LayerProfile
from isoviz.studies.result import Axis, Figure, Panel, Row, Series, Table
from isoviz.studies.trained import Drawing, TrainedStudy, mean_line

NONE = "no penalty"
_ELSEWHERE = {*grids.OF_SENTENCES, "squad", grids.SECOND}
"""Tasks of the shared sweep: a figure draws from one of them, or from those that the user names instead."""
Curve = Callable[[LayerProfile], Sequence[float | None]]


def profiles(evidence: Evidence) -> dict[int, LayerProfile]:
    """Seed → the layer profile of the finished run."""
    return {run.seed: run.layers for run in evidence.finished if run.layers is not None}


def of_lambda(evidence: Evidence, lam: float) -> Evidence:
    """The runs with this λ; 0 is plain fine-tuning."""
    return evidence.where(lam=lam) if lam else evidence.where(method="baseline")


def lambda_name(lam: float) -> str:
    """`λ = −1`."""
    return f"λ = {setting(lam)}" if lam else NONE


def _lines(evidence: Evidence, lams: Sequence[float], curve: Curve, first: int, spread: bool) -> list[Series]:
    """One line per λ."""
    lines = [
        mean_line(
            [curve(profile) for profile in profiles(of_lambda(evidence, lam)).values()],
            lambda_name(lam),
            lambda_name(lam),
            first,
            spread=spread,
            value=lam,
        )
        for lam in lams
    ]
    return [line for line in lines if line]


def _drawing(
    evidence: Evidence,
    place: str,
    title: str,
    lams: Sequence[float],
    curve: Curve,
    axes: tuple[str, str],
    first: int = 0,
    spread: bool = True,
) -> Drawing:
    panels, rows = [], []
    for task in evidence.tasks:
        for model in evidence.models:
            subset = evidence.where(model=model, task=task)
            lines = _lines(subset, lams, curve, first, spread)
            name = f"{task_title(task)}, {model.rsplit('/', 1)[-1]}"
            panels.append(Panel(title=name, x_axis=Axis(label=axes[0]), y_axis=Axis(label=axes[1]), series=lines))
            for lam in lams:
                part = of_lambda(subset, lam)
                count: Row = [name, lambda_name(lam), f"{len(profiles(part))} of {len(part.planned)}"]
                line = next((series for series in lines if series.value == lam), None)
                ends: Row = [None, None, None] if line is None else [line.y[0], line.y[-1], max(line.y, key=abs)]
                rows.append([*count, *ends])
    header = ["task and model", "penalty", "runs measured", "first", "last", "largest"]
    table = Table(title=f"{title}: ends of the lines", header=header, rows=rows, notes=["means over seeds"])
    figure = Figure(title=title, place=place, columns=min(3, len(panels)), panels=panels)
    missing = sum(run.layers is None for run in evidence.finished)
    notes = [f"{missing} finished runs are not measured layer by layer yet."] if missing else []
    return Drawing(figures=[figure], tables=[table], notes=notes)


def _by_seed(evidence: Evidence, lam: float, value: Callable[[LayerProfile], float | None]) -> dict[int, float]:
    values = {seed: value(profile) for seed, profile in profiles(of_lambda(evidence, lam)).items()}
    return {seed: number for seed, number in values.items() if number is not None}


def mean_length(profile: LayerProfile) -> float:
    """Length of the mean activation vector of the last layer's tokens."""
    return math.sqrt(sum(value * value for value in profile.mean_activation))


def cosreg_centres(evidence: Evidence) -> Judgement:
    """Length of the mean vector: CosReg at λ = 1 minus none, and none minus λ = −1."""
    without, pushed, pulled = (_by_seed(evidence, lam, mean_length) for lam in (0.0, 1.0, -1.0))
    differences = [Change.of("λ = 1 minus none", pushed, without), Change.of("none minus λ = −1", without, pulled)]
    return moved(differences, "The mean vector's length", direction=-1)


def cosreg_leaves_isotropy(evidence: Evidence) -> Judgement:
    """IsoScore* of the last layer: CosReg at λ = 1 minus none."""
    without = _by_seed(evidence, 0.0, _last)
    level = mean_sd(without.values())[0]
    opening = f"IsoScore* of the last layer, {wording.number(level)} without a penalty, changes by"
    return moved([Change.of("CosReg at λ = 1", _by_seed(evidence, 1.0, _last), without)], opening, direction=-1)


def _last(profile: LayerProfile) -> float | None:
    return profile.isoscore_star[-1]


class IStarFigure4(TrainedStudy):
    """Mean activation of every dimension, with CosReg both ways and without."""

    slug: ClassVar[str] = "istar-figure-4"
    title: ClassVar[str] = "Does CosReg change more than the mean?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 4"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "The mean of each dimension over the last layer's tokens of the validation set, after fine-tuning with CosReg at λ = −1 and "
        "1 and without a penalty."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The paper does not say which vectors are averaged; here all unpadded tokens of the last layer.",
        "The printed IsoScore* values of CosReg, 0.004 to 0.007, are of SST-2, the figure is of QNLI.",
        "Single dimensions are far larger than the rest in the paper's encoders, so the axis hides most of them.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("CosReg at λ = 1 moves the mean towards zero, and at λ = −1 away from it.", cosreg_centres),
        Claim("CosReg does not make representations more isotropic.", cosreg_leaves_isotropy),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, CosReg at λ = −1 and 1 and none, 3 seeds",
            "full": "ALBERT, BERT and DistilBERT on QNLI, CosReg at λ = −1 and 1 and none, 5 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.COSREG,)
    profiles: ClassVar[bool] = True

    def show(self, evidence: Evidence) -> Drawing:
        """A line per λ over the dimensions."""
        axes = ("dimension", "mean activation")
        title = "Mean activation of each dimension"
        return _drawing(
            evidence,
            self.place,
            title,
            (-1.0, 0.0, 1.0),
            lambda profile: profile.mean_activation,
            axes,
            first=1,
            spread=False,
        )


DIMENSION_LAMBDAS = (-5.0, -3.0, 0.0, 3.0, 5.0)


def dimension_follows_lambda(evidence: Evidence) -> Judgement:
    """Spearman's ρ of λ with TwoNN of the last layer."""
    lams, values, names = [], [], []
    for model in evidence.models:
        for task in evidence.tasks:
            subset = evidence.where(model=model, task=task)
            for lam in DIMENSION_LAMBDAS:
                mean = mean_sd(_by_seed(subset, lam, lambda profile: profile.twonn[-1]).values())[0]
                if mean is not None:
                    lams.append(lam)
                    values.append(mean)
                    names.append(f"{model} on {task}")
    return goes_with(lams, values, names, "of λ with the last layer's intrinsic dimension", 1)


class IStarFigure5(TrainedStudy):
    """TwoNN of the first token's vectors, layer by layer."""

    slug: ClassVar[str] = "istar-figure-5"
    title: ClassVar[str] = "Does isotropy change the intrinsic dimension?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 5"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "TwoNN intrinsic dimension of the [CLS] vectors of the validation set in every layer, after I-STAR at λ = −5, −3, 3 and 5 and "
        "without a penalty."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The paper's TwoNN library counted from 0 until 2024, which lowers its values by up to a few percent. Here it counts from 1.",
        "TwoNN falls short in many dimensions: it gives 47 for 800 points of a 100-dimensional Gaussian.",
        "The embedding output (layer 0) has the same [CLS] vector for every text, so it has no dimension.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("A larger λ raises the intrinsic dimension of the last layer.", dimension_follows_lambda),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, λ at 4 values and none, 3 seeds (of Figure 3)",
            "full": "ALBERT, BERT and DistilBERT on SST-2, λ at 4 values and none, 5 seeds; runs of Figure 3",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.LAMBDA,)
    profiles: ClassVar[bool] = True

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """One task; the λ of the figure and the baseline."""
        lam = config.params.get("lam", 0.0) if config.method == "istar" else 0.0
        return config.task not in _ELSEWHERE - {"glue/sst2"} and config.method != "cosreg" and lam in DIMENSION_LAMBDAS

    def show(self, evidence: Evidence) -> Drawing:
        """A line per λ over the layers."""
        axes = ("layer", "TwoNN of [CLS]")
        return _drawing(
            evidence, self.place, "Intrinsic dimension by layer", DIMENSION_LAMBDAS, lambda profile: profile.twonn, axes
        )


LAYER_LAMBDAS = (-1.0, 0.0, 1.0)


def _halves(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Means over the earlier and the later half of the layers, without the embedding output."""
    layers = values[1:]
    cut = len(layers) // 2
    return mean_sd(layers[:cut])[0], mean_sd(layers[-cut:])[0]


def early_layers_move_most(evidence: Evidence) -> Judgement:
    """The change of IsoScore* from none to λ = 1: earlier half of the layers minus later half."""
    baseline_values, positive = profiles(of_lambda(evidence, 0.0)), profiles(of_lambda(evidence, 1.0))
    early, late = {}, {}
    for seed in baseline_values.keys() & positive.keys():
        pairs = zip(positive[seed].isoscore_star, baseline_values[seed].isoscore_star, strict=True)
        first, last = _halves([None if a is None or b is None else abs(a - b) for a, b in pairs])
        if first is not None and last is not None:
            early[seed], late[seed] = first, last
    a, b = (wording.number(mean_sd(half.values())[0]) for half in (early, late))
    opening = f"λ = 1 moves IsoScore* by {a} in the earlier half of the layers and by {b} in the later half"
    return moved([Change.of("difference", early, late)], opening)


def last_layer_stays(evidence: Evidence) -> Judgement:
    """IsoScore* at λ = 1: the later half of the layers minus the earlier half."""
    positive = profiles(of_lambda(evidence, 1.0))
    halves = {seed: _halves(profile.isoscore_star) for seed, profile in positive.items()}
    defined = {seed: (a, b) for seed, (a, b) in halves.items() if a is not None and b is not None}
    later, earlier = {s: b for s, (_, b) in defined.items()}, {s: a for s, (a, _) in defined.items()}
    return moved([Change.of("later minus earlier layers", later, earlier)], "IsoScore* at λ = 1", direction=-1)


class IStarFigure6(TrainedStudy):
    """IsoScore* of every layer's tokens."""

    slug: ClassVar[str] = "istar-figure-6"
    title: ClassVar[str] = "Which layers does I-STAR change?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 6"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "IsoScore* (ζ = 0.2) of each layer's tokens on the validation set, after I-STAR at λ = −1 and 1 and without a penalty."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The paper does not say whether Σ_S is that of the layer or of all layers. Here it is that of the layer, from training tokens.",
        "The number of seeds behind the lines is not given.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("I-STAR changes the isotropy of early layers most.", early_layers_move_most),
        Claim("Later layers stay less isotropic than early ones even at λ = 1.", last_layer_stays),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, λ = −1, 1 and none, 3 seeds (of Figure 3)",
            "full": "ALBERT, BERT and DistilBERT on QNLI, λ = −1, 1 and none, 5 seeds; runs of Figure 3",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.LAMBDA,)
    profiles: ClassVar[bool] = True

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """One task; the λ of the figure and the baseline."""
        lam = config.params.get("lam", 0.0) if config.method == "istar" else 0.0
        return config.task not in _ELSEWHERE - {"glue/qnli"} and config.method != "cosreg" and lam in LAYER_LAMBDAS

    def show(self, evidence: Evidence) -> Drawing:
        """A line per λ over the layers."""
        axes = ("layer", "IsoScore*, ζ = 0.2")
        return _drawing(
            evidence, self.place, "IsoScore* by layer", LAYER_LAMBDAS, lambda profile: profile.isoscore_star, axes
        )
