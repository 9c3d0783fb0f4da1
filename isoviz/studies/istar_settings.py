"""Figures 7 and 8 of I-STAR: performance against the shrinkage ζ, and with the penalty on one layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from isoviz import tasks
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import setting
from isoviz.studies import istar_grids as grids
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid
from isoviz.studies.istar_lambda import PAPER
from isoviz.studies.judging import Part, best, changes, goes_with, moved, primary
from isoviz.studies.protocol import Claim, Judgement
from isoviz.studies.result import Axis, Figure, Panel, Reference, Row, Series, Table
from isoviz.studies.trained import Drawing, TrainedStudy

SPREAD = "mean ± standard deviation over seeds"


def line(evidence: Evidence, name: str, values: Sequence[Any], metric: str) -> list[Series]:
    """The task's metric against one parameter of the method; values without a finished run are gaps."""
    ends = [(float(value), score) for value in values if (score := evidence.where(**{name: value}).ends(metric))]
    if not ends:
        return []
    return [
        Series(
            name="I-STAR",
            role="measured",
            group="istar",
            x=[value for value, _ in ends],
            y=[score[0] for _, score in ends],
            low=[score[1] for _, score in ends],
            high=[score[2] for _, score in ends],
            spread=SPREAD,
        )
    ]


def _drawing(evidence: Evidence, place: str, name: str, symbol: str, title: str, aside: Sequence[Any] = ()) -> Drawing:
    """A panel per model and task; values in `aside` are a dashed line instead of a place on the axis."""
    panels: list[Panel] = []
    rows: list[Row] = []
    for task in evidence.tasks:
        metric = tasks.get(task).primary
        for model in evidence.models:
            subset = evidence.where(model=model, task=task)
            values = subset.distinct(name)
            references = []
            for value in aside:
                mean = subset.where(**{name: value}).cell(metric).mean
                if mean is not None:
                    references.append(Reference(label="all layers together", axis="y", value=mean))
            if not aside and (selected := best(subset, metric, name)):
                at = float(selected.planned[0].params[name])
                references.append(Reference(label=f"best {symbol}", axis="x", value=at))
            panels.append(
                Panel(
                    title=f"{task_title(task)}, {model.rsplit('/', 1)[-1]}",
                    x_axis=Axis(label=symbol),
                    y_axis=Axis(label=metric),
                    series=line(subset, name, [value for value in values if value not in aside], metric),
                    references=references,
                )
            )
            for value in values:
                value_text = "all" if value in aside else setting(value)
                rows.append([task_title(task), model, value_text, subset.where(**{name: value}).cell(metric).text()])
    figure = Figure(title=title, place=place, columns=min(3, len(panels)), panels=panels)
    table = Table(title=title, header=["task", "model", symbol, "performance"], rows=rows, notes=[f"{SPREAD}."])
    return Drawing(figures=[figure], tables=[table])


def inner_zeta_is_best(evidence: Evidence) -> Judgement:
    """The best ζ between 0 and 1, minus ζ = 0 and minus ζ = 1."""

    def inner(part: Evidence, metric: str) -> Evidence | None:
        return best(part.where(lambda config: 0 < float(config.params["zeta"]) < 1), metric, "zeta")

    differences = [
        change for end in (0.0, 1.0) for change in changes(evidence, inner, _with(zeta=end), name=f"minus ζ = {end:g}")
    ]
    return moved(differences, "The best ζ between 0 and 1 (the best of several is optimistic)")


def _with(**params: Any) -> Part:
    return lambda evidence, metric: evidence.where(**params)


class IStarFigure7(TrainedStudy):
    """One line over ζ."""

    slug: ClassVar[str] = "istar-figure-7"
    title: ClassVar[str] = "How much shrinkage does I-STAR need?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 7"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "The task's metric against ζ, the weight of Σ_S, from 0 (the batch alone) to 1 (Σ_S alone), at one negative λ."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "At ζ = 1 the penalty has a value but no gradient, so that end is plain fine-tuning.",
        "The gradient scales with 1 − ζ: a line over ζ at one λ compares penalties of different strength.",
        "λ is that of the paper's Table 2, −1 for all three encoders on RTE; other hyperparameters are not printed.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("The best ζ lies strictly between 0 and 1.", inner_zeta_is_best, about_performance=True),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, ζ at 6 values, λ = −1, 3 seeds",
            "full": "ALBERT, BERT and DistilBERT on RTE, ζ at 6 values, λ = −1, 5 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.SHRINKAGE,)

    def show(self, evidence: Evidence) -> Drawing:
        """Performance against ζ, the best one marked."""
        return _drawing(evidence, self.place, "zeta", "ζ", "Performance against ζ")


def a_layer_beats_all(evidence: Evidence) -> Judgement:
    """Each single layer minus all layers together."""
    layers = [layer for layer in evidence.distinct("layer") if layer]
    differences = [
        change
        for layer in layers
        for change in changes(evidence, _with(layer=layer), _with(layer=0), name=f"layer {layer}")
    ]
    return moved(differences, "One layer minus all together", of="any")


def no_trend_over_layers(evidence: Evidence) -> Judgement:
    """Spearman's ρ of the layer's number with performance; a clear one is a pattern, its absence shows none."""
    x, y, names = [], [], []
    for model in evidence.models:
        for task in evidence.tasks:
            for layer in evidence.distinct("layer"):
                mean = evidence.where(model=model, task=task, layer=layer).cell(primary(task)).mean
                if layer and mean is not None:
                    x.append(float(layer))
                    y.append(mean)
                    names.append(f"{model} on {task}")
    outcome, sentence = goes_with(x, y, names, "of the layer's number with performance", 1)
    return ("cannot tell" if outcome == "cannot tell" else "not held"), sentence


class IStarFigure8(TrainedStudy):
    """One line over the layers."""

    slug: ClassVar[str] = "istar-figure-8"
    title: ClassVar[str] = "Does it matter which layer I-STAR acts on?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 8"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "The task's metric with the penalty on one layer's tokens at a time, and with all layers' together as a dashed line."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "λ and ζ are those that Table 2 found best for all layers together, which favours the dashed line.",
        "The embedding output is not among the layers.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("A penalty on a single layer can beat the one on all layers.", a_layer_beats_all, about_performance=True),
        Claim("No consistent pattern emerges over the layers.", no_trend_over_layers, about_performance=True),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/acceptability, 1,000 training rows, 3 epochs, 4 layers and all together, λ = −1, 3 seeds",
            "full": "ALBERT, BERT and DistilBERT on CoLA, every layer and all together, λ and ζ of Table 2, 5 seeds",
        }
    )
    grids: ClassVar[tuple[Grid, ...]] = (grids.LAYERS,)

    def show(self, evidence: Evidence) -> Drawing:
        """Performance against the layer."""
        return _drawing(evidence, self.place, "layer", "layer", "Performance against the penalised layer", aside=(0,))
