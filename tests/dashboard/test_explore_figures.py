"""Explore's figures and its map by themselves: arrays and entries in, figures out; text that is never HTML."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.explore import figures, sections
from dashboard.shared import map_figure
from dashboard.shared.map_figure import MOST_GROUPS, OWN_COLOUR
from isoviz import metrics
from isoviz.exploring import outputs
from isoviz.metrics.record import CloudRecord, Reading


def test_undefined_values_are_gaps_and_intervals_bars() -> None:
    readings = [Reading(undefined="why"), Reading(value=0.5, interval=(0.25, 1.0))]
    entries = [
        CloudRecord(cloud="c", layer=layer, pooling="cls", n=5, d=4, readings={"isoscore_unbiased": reading})
        for layer, reading in enumerate(readings)
    ]
    (line,) = figures.layer_profile(entries, "isoscore_unbiased", "unbiased").data
    assert line.y == (None, 0.5)
    assert (line.error_y.array, line.error_y.arrayminus) == ((None, 0.5), (None, 0.25))
    (line,) = figures.layer_profile(entries, "ev_1", "EV").data
    assert line.y == (None, None) and line.error_y.array is None


def test_dimensions_without_spread_have_a_bin_of_their_own() -> None:
    sigma = np.array([0.0, 0.01, 1.0, 1.0], dtype=np.float32)
    figure = figures.sigma_histogram(sigma, "cls")
    (bars,) = figure.data
    assert bars.customdata[0] == "σ = 0" and bars.y[0] == 25 and sum(bars.y) == pytest.approx(100)
    assert bars.y[-1] == 50 and bars.y[1] == 25  # the largest and the smallest positive one
    assert figure.layout.xaxis.ticktext == ("0", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1")
    assert figures.sigma_histogram(np.zeros(3), "cls").data[0].y[0] == 100


def test_table_of_the_output_matrix_has_both_conventions_at_both_scales() -> None:
    weights = np.random.default_rng(0).normal(size=(50, 6))
    shown = sections.output_table(outputs.measure(weights))
    defined, printed = shown.to_numpy().tolist()
    assert defined == ["as defined", *metrics.partition(weights), *metrics.partition(weights, scale_free=True)]
    assert printed[1:3] == list(metrics.partition(weights, convention="published"))
    undefined = sections.output_table(outputs.measure(np.zeros((2, 4))))
    assert undefined.iloc[0].tolist() == ["as defined", 1.0, 0.0, None, None]


def drawn(colours: pd.Series | None, count: int = 6, dimensions: int = 2, **more: object) -> go.Figure:
    points = np.arange(count * dimensions, dtype=float).reshape(count, dimensions)
    axes = ["one", "two", "three"][:dimensions]
    return map_figure.cloud_map(points, axes, colours, [f"text {i}" for i in range(count)], **more)  # type: ignore[arg-type]


def test_a_part_and_a_symbol_per_label_in_webgl() -> None:
    figure = drawn(pd.Series(["yes", "no", "yes", None, "no", "yes"], name="label"))
    assert [(trace.type, trace.name, len(trace.x)) for trace in figure.data] == [
        ("scattergl", "missing", 1),
        ("scattergl", "no", 2),
        ("scattergl", "yes", 3),
    ]
    assert len({trace.marker.symbol for trace in figure.data}) == 3
    assert figure.data[2].x.tolist() == [0, 4, 10] and figure.data[2].text.tolist() == ["text 0", "text 2", "text 5"]


def test_numbers_are_a_scale_and_rare_values_go_together() -> None:
    figure = drawn(pd.Series(range(20), name="length"), 20)
    (trace,) = figure.data
    scale = figure.layout.coloraxis
    assert trace.marker.coloraxis == "coloraxis" and scale.colorbar.title.text == "length"
    assert (scale.cmin, scale.cmax) == (0, 19) and len(scale.colorscale) > 2  # the browser mixes the colours itself
    values = [f"v{i}" for i in range(MOST_GROUPS + 2) for _ in range(i + 1)]
    figure = drawn(pd.Series(values, name="kind"), len(values))
    assert len(figure.data) == MOST_GROUPS and figure.data[0].name == "other values (3)"
    assert sum(len(trace.x) for trace in figure.data) == len(values)
    assert len(drawn(pd.Series([0, 1, 0, 1, 0, 1], name="label")).data) == 2  # codes are not a scale


@pytest.mark.parametrize("dimensions", [2, 3])
def test_own_sentences_are_drawn_over_the_map_and_widen_its_axes(dimensions: int) -> None:
    own = np.full((1, dimensions), 99.0)
    figure = drawn(None, dimensions=dimensions, own=own, own_texts=["1"])
    rows, own_trace = figure.data
    assert own_trace.marker.color == OWN_COLOUR and own_trace.x.tolist() == [99] and not rows.showlegend
    axis = figure.layout.scene.xaxis if dimensions == 3 else figure.layout.xaxis
    assert axis.range[1] > 99 and axis.title.text == "one"
    assert rows.type == ("scatter3d" if dimensions == 3 else "scattergl")
    assert own_trace.type == ("scatter3d" if dimensions == 3 else "scatter")  # which plotly draws, over the points


def test_figures_side_by_side_share_their_axes() -> None:
    one, other = go.Figure(), go.Figure()
    one.add_bar(x=[1, 2], y=[0, 10], width=1)
    other.add_scatter(
        x=[5, 9], y=[None, 40], error_y={"type": "data", "symmetric": False, "array": [0, 5], "arrayminus": [0, 1]}
    )
    figures.share_axes([one, other])
    assert one.layout.xaxis.range == other.layout.xaxis.range and one.layout.yaxis.range == other.layout.yaxis.range
    assert one.layout.xaxis.range[0] < 1 and one.layout.xaxis.range[1] > 9 and one.layout.yaxis.range[1] > 45
    one.update_xaxes(range=[0, 1])
    other.update_xaxes(range=[-1, 0.5])
    figures.share_axes([one, other])
    assert other.layout.xaxis.range == (-1, 1)
