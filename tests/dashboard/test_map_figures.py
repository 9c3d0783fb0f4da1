"""The map as a figure: parts and their colours, own sentences over it, text that is never HTML."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.explore import figures, map_figure
from dashboard.explore.map_figure import MOST_GROUPS, OWN_COLOUR
from dashboard.shared import theme, wording


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


def test_few_points_are_opaque_and_many_show_their_density() -> None:
    few, many = (drawn(None, count).data[0].marker.opacity for count in (2_000, 2_001))
    assert (few, many) == (0.9, 0.75)
    assert drawn(None, 2_001, 3).data[0].marker.opacity == 1.0  # else plotly draws one trace over the other


def test_classes_have_the_colours_of_points_in_the_order_of_their_names() -> None:
    figure = drawn(pd.Series([f"v{i}" for i in range(MOST_GROUPS + 1)], name="kind"), MOST_GROUPS + 1)
    *colours, grey = theme.POINT_PALETTES["light"]
    assert [trace.marker.color for trace in figure.data] == [grey, *colours[: MOST_GROUPS - 1]]


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


def test_shared_room_and_texts_that_are_no_html() -> None:
    figure = drawn(pd.Series(["<b>x</b>"] * 6, name="label"), range_of=np.array([[-50.0, -50.0], [50.0, 50.0]]))
    assert figure.layout.xaxis.range[0] < -50 and figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"
    assert wording.cut("a  b\nc") == "a b c" and len(wording.cut("x" * 500)) == 90


def test_figures_side_by_side_share_their_axes() -> None:
    one, other = go.Figure(), go.Figure()
    one.add_bar(x=[1, 2], y=[0, 10], width=1)
    other.add_scatter(
        x=[5, 9], y=[None, 40], error_y={"type": "data", "symmetric": False, "array": [0, 5], "arrayminus": [0, 1]}
    )
    figures.share_axes([one, other])
    assert one.layout.xaxis.range == other.layout.xaxis.range and one.layout.yaxis.range == other.layout.yaxis.range
    assert one.layout.xaxis.range[0] < 0.5 and one.layout.xaxis.range[1] > 9 and one.layout.yaxis.range[1] > 45
    one.update_xaxes(range=[0, 1])
    other.update_xaxes(range=[-1, 0.5])
    figures.share_axes([one, other])
    assert other.layout.xaxis.range == (-1, 1)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_marked_points_stand_out_and_no_point_is_lost(dimensions: int) -> None:
    marked = np.array([True, False, True, False, False, False])
    figure = drawn(pd.Series(["a", "b", "a", "a", "b", "b"], name="label"), dimensions=dimensions, marked=marked)
    strong = {trace.name: trace.text.tolist() for trace in figure.data if trace.showlegend}
    assert strong == {"a": ["text 0", "text 2"], "b": []}
    faint = [trace for trace in figure.data if not trace.showlegend]
    assert sorted(text for trace in faint for text in trace.text) == ["text 1", "text 3", "text 4", "text 5"]
    assert all(trace.marker.opacity < 0.2 for trace in faint)
    scale = drawn(pd.Series(np.arange(20.0), name="length"), 20, dimensions, marked=np.arange(20) < 5)
    assert [trace.marker.color.tolist() for trace in scale.data] == [list(range(5, 20)), list(range(5))]


def test_density_lines_are_over_the_points_and_clusters_are_named() -> None:
    places = np.array([[0.0, 0], [1, 0], [9, 9], [5, 5]])
    names = pd.Series(["1: cat", "1: cat", "2: dog", map_figure.NO_CLUSTER])
    line = np.array([[0.0, 0], [1, 1], [0, 1], [0, 0]])
    figure = map_figure.cloud_map(places, ["x", "y"], names, ["a"] * 4, density=[(0.5, [line, line])], named=True)
    alone, first, second, lines, labels = figure.data
    assert (alone.name, alone.marker.color) == (map_figure.NO_CLUSTER, map_figure._OTHER_COLOUR)
    assert (first.name, second.name) == ("1: cat", "2: dog") and lines.mode == "lines" and len(lines.x) == 10
    assert np.isnan(lines.x[4]) and list(labels.text) == ["1: cat", "2: dog"] and list(labels.x) == [0.5, 9]
