"""The dashboard's figures of arrays, measured layers, experiments and studies, for notebooks: use them as `isoviz.plots`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from dashboard.explore import figures
from dashboard.papers import drawing, records
from dashboard.shared import charts, map_figure, tables
from isoviz import metrics, studies, tasks
from isoviz.errors import InputError, unknown_name
from isoviz.exploring import maps, measuring
from isoviz.metrics.record import CloudRecord
from isoviz.runs.examples import opened
from isoviz.runs.store import Store
from isoviz.studies import figures as study_figures
from isoviz.studies.result import Result

_POOLING = "cls"
"""Whose colour the figures of one cloud take."""


def correlations(points: ArrayLike) -> go.Figure:
    """|ρ| of all pairs of dimensions, clustered. Of points (n, d); IsoBN's figure 2 (Zhou et al. 2021)."""
    matrix = metrics.abs_correlation(np.asarray(points))
    order = metrics.correlation_order(matrix)
    clustered = np.nan_to_num(matrix[np.ix_(order, order)])  # a dimension that never varies has no correlation
    np.fill_diagonal(clustered, 1.0)
    return drawing.panel(study_figures.matrix("", clustered, ""), alone=True)


def deviations(points: ArrayLike) -> go.Figure:
    """How many dimensions have which standard deviation, on a log axis. Of points (n, d)."""
    return figures.sigma_histogram(metrics.dimension_std(np.asarray(points)), _POOLING)


def explained_variance(points: ArrayLike, *, log: bool = False) -> go.Figure:
    """EV_k, the share of variance in the k strongest directions, beside a perfectly isotropic cloud's. Of points (n, d).

    Args:
        log: k on a logarithmic axis.
    """
    array = np.asarray(points)
    return figures.spectrum({0: metrics.explained_variance(array)}, 0, _POOLING, array.shape[1], log)


def cosines(points: ArrayLike) -> go.Figure:
    """The cosines of pairs of points (n, d), and their mean. Many points are sampled."""
    array = np.asarray(points)
    return figures.cosine_histogram(measuring.cosine_counts(array), float(metrics.mean_cosine(array)), _POOLING)


def points_map(
    points: ArrayLike, labels: Sequence[object] | None = None, texts: Sequence[str] | None = None, *, kind: str = "pca"
) -> go.Figure:
    """A map of points (n, d) in two dimensions.

    Args:
        labels: (n,) colour the points.
        texts: (n,) appear under the pointer; without them the points' numbers do.
        kind: `pca` or `umap`.
    """
    array = np.asarray(points)
    request = maps.MapRequest(kind, points=max(5, len(array)))  # type: ignore[arg-type]  # checked by `coordinates`
    axes = [f"{'PC' if kind == 'pca' else 'UMAP'} {number}" for number in (1, 2)]
    colours = None if labels is None else pd.Series(list(labels), name="label")
    words = [str(number) for number in range(len(array))] if texts is None else texts
    return map_figure.cloud_map(maps.coordinates(array, request), axes, colours, words, equal=kind == "pca")


def layers(records: Sequence[CloudRecord], measure: str = "isoscore") -> go.Figure:
    """A measure over the layers of an encoder, a line per pooling.

    Args:
        records: `isoviz.operations.measure.measure(...).by_layer`.
        measure: a slug of `isoviz.metrics.catalogue()`.
    """
    return figures.layer_profile(records, measure, metrics.get(measure).number_title)


def tradeoff(
    experiment: str, metric: str | None = None, measure: str = "isoscore_star", store: str | Path | None = None
) -> go.Figure:
    """Task performance against isotropy, a point per run, with means, spread and Pareto front.

    Args:
        experiment: of the store, or of the bundled examples.
        metric: a metric of its task; by default the task's primary one.
        measure: a slug of `isoviz.metrics.catalogue()`.
        store: URL or folder, by default the app's.

    Raises:
        InputError: no such experiment, or no finished run in it has both numbers.
    """
    own, examples = Store(store), opened()
    reader = own if examples is None or own.summaries(group=experiment, limit=1) else examples
    runs = tables.runs_frame(reader.summaries(group=experiment))
    if runs.empty:
        groups = [facet.group for one in (own, examples) if one is not None for facet in one.facets()]
        raise unknown_name("experiment", experiment, sorted(filter(None, {*groups})), field="experiment")
    runs = runs[runs["task"] == runs["task"].iloc[0]]
    labels = tables.number_parameters(runs)
    parameter = next(iter(labels), None)
    chosen = metric or tasks.primary_metric(runs["task"].iloc[0], runs["metrics"].iloc[0])
    points = tables.points(runs, chosen, measure, parameter)
    if points.empty:
        raise InputError(f"metric: no finished run of '{experiment}' has {chosen} and {measure}", field="metric")
    return charts.tradeoff(points, chosen, metrics.get(measure), labels.get(parameter or "", ""))


def study(result: str | Result) -> list[go.Figure]:
    """The figures of a study of a paper, one for each panel.

    Args:
        result: of a study that was run, or the name of a study, such as `isobn-figures`, whose recorded result ships with IsoViz.
    """
    if isinstance(result, str):
        result = records.shipped(studies.get(result))[0].result
    return [
        drawing.panel(panel, alone=len(figure.panels) == 1).update_layout(title=panel.title or figure.title)
        for figure in result.figures
        for panel in figure.panels
    ]
