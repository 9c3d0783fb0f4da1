"""Figures: one mark per run, escaped text, levels of runs without the parameter."""

from __future__ import annotations

import pytest

from dashboard.shared import charts, tables, theme
from isoviz import metrics
from tests.dashboard.made_up import config, result, row

STAR = metrics.get("isoscore_star")
RUNS = [
    row("r1", config("istar", 0, {"lam": -1}), outcome=result(0.75, 0.125)),
    row("r2", config("istar", 1, {"lam": -1}), outcome=result(0.25, 0.375)),
    row("r3", config("istar", 0, {"lam": 1}), outcome=result(0.5, 0.625)),
    row("r4", config("baseline"), outcome=result(0.5, 0.25)),
]
POINTS = tables.points(tables.runs_frame(RUNS), "accuracy", "isoscore_star", "lam")


def test_tradeoff_has_one_mark_per_run_and_colour_by_parameter() -> None:
    figure = charts.tradeoff(POINTS, "accuracy", STAR, "Strength λ")
    swept, plain, mean, *legend = figure.data
    assert [trace.name for trace in legend] == ["Pareto front", "I-STAR", "Baseline"]
    assert (list(mean.x), list(mean.y)) == ([0.25], [0.5])  # of both seeds of λ = −1, with its spread both ways
    assert list(mean.error_x.array) == pytest.approx([0.25 / 2**0.5])
    assert list(mean.error_y.array) == pytest.approx([0.5 / 2**0.5])
    assert "mean of 2 seeds" in mean.text[0] and "λ = −1" in mean.text[0]
    assert (list(swept.x), list(swept.y)) == ([0.125, 0.375, 0.625], [0.75, 0.25, 0.5])
    assert list(swept.marker.color) == [-1, -1, 1] and swept.marker.symbol == theme.method_symbol("istar")
    assert plain.marker.color == theme.method_colour("baseline") and [data[4] for data in plain.customdata] == ["r4"]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-1, 1)
    assert figure.layout.uirevision


def test_a_scale_has_zero_in_its_middle_only_where_values_are_negative() -> None:
    runs = [row(f"r{lam}", config("istar", 0, {"lam": lam}), outcome=result(0.5, 0.5)) for lam in (1, 3)]
    axis = charts.tradeoff(
        tables.points(tables.runs_frame(runs), "accuracy", "isoscore_star", "lam"), "accuracy", STAR, "λ"
    ).layout.coloraxis
    assert (axis.cmin, axis.cmax) == (1, 3) and list(axis.colorbar.tickvals) == [1, 3]
    runs.append(row("r5", config("istar", 0, {"lam": -1}), outcome=result(0.5, 0.5)))
    axis = charts.tradeoff(
        tables.points(tables.runs_frame(runs), "accuracy", "isoscore_star", "lam"), "accuracy", STAR, "λ"
    ).layout.coloraxis
    assert (axis.cmin, axis.cmax) == (-3, 3) and axis.colorscale[1][0] == 0.5


def test_runs_of_other_settings_are_not_joined_and_their_lines_say_in_what_they_differ() -> None:
    """One line through a mean of epochs 3 and 6, and of ζ = 0.2 and 0.8, is a curve that no one ran."""
    runs = [
        row(f"r{index}", config("istar", seed, {"lam": lam, "zeta": zeta}, epochs=epochs), outcome=result(value, 0.5))
        for index, (seed, lam, zeta, epochs, value) in enumerate(
            [
                (0, -1, 0.2, 3, 0.25),
                (1, -1, 0.2, 3, 0.75),
                (0, 1, 0.2, 3, 0.5),
                (0, 1, 0.8, 3, 1.0),
                (0, 1, 0.2, 6, 0.0),
            ]
        )
    ]
    runs += [row(f"b{epochs}", config("baseline", epochs=epochs), outcome=result(epochs / 8, 0.5)) for epochs in (3, 6)]
    points = tables.points(tables.runs_frame(runs), "accuracy", "isoscore_star", "lam")
    figure = charts.against_parameter(points, "accuracy", STAR, "Strength λ")
    lines = {
        trace.name: (list(trace.x), list(trace.y)) for trace in figure.data if trace.mode == "lines" and trace.y[0]
    }
    assert {
        "I-STAR, ζ = 0.2, epochs 3": ([-1, 1], [0.5, 0.5]),
        "I-STAR, ζ = 0.8, epochs 3": ([1], [1.0]),
    }.items() <= lines.items()
    names = [trace.name for trace in figure.data if trace.mode == "lines"]
    assert "I-STAR, ζ = 0.2, epochs 6" in names
    assert names[-2:] == ["Baseline, epochs 3 0.375 (n = 1)", "Baseline, epochs 6 0.750 (n = 1)"]
    # distinguished within one colour
    assert len({trace.line.dash for trace in figure.data if trace.mode == "lines"}) >= 3
    assert any("epochs 6" in mark[0] for trace in figure.data if trace.mode == "markers" for mark in trace.customdata)


def test_strip_shows_every_seed_and_the_mean() -> None:
    runs = tables.runs_frame(RUNS[:3])
    figure = charts.seed_strip(runs.assign(row=runs["variant"]), "accuracy", STAR, [("majority", 0.5)])
    seeds, means, level = figure.data
    assert list(seeds.x) == [0.75, 0.25, 0.5] and list(seeds.y) == ["λ = −1", "λ = −1", "λ = 1"]
    assert list(means.x) == [0.5, 0.5]
    assert level.name == "majority 0.500" and figure.layout.shapes[0].x0 == 0.5


def test_collapsed_runs_are_ringed_in_every_figure() -> None:
    runs = [
        row("r1", config("istar", 0, {"lam": -1}), outcome=result(0.75, 0.125)),
        row("r2", config("istar", 0, {"lam": 1}), outcome=result(0.5, 0.625, collapsed="predicts one class")),
    ]
    frame = tables.runs_frame(runs)
    points = tables.points(frame, "accuracy", "isoscore_star", "lam")
    for figure, place in (
        (charts.tradeoff(points, "accuracy", STAR, "λ"), (0.625, 0.5)),
        (charts.against_parameter(points, "accuracy", STAR, "λ"), (1, 0.5)),
        (charts.seed_strip(frame.assign(row="<b>"), "accuracy", STAR, []), (0.5, "&lt;b&gt;")),
    ):
        (ring,) = (trace for trace in figure.data if trace.name == "learned nothing")
        assert ((ring.x[0], ring.y[0]), len(ring.x)) == (place, 1)
        assert figure.layout.showlegend


def test_text_from_data_is_escaped() -> None:
    runs = tables.runs_frame(RUNS[:1]).assign(problem="<a href='x'>", row="<b>row</b>")
    figure = charts.seed_strip(runs, "accuracy", STAR, [("<i>", 0.5)])
    text = figure.to_json()
    assert not any(tag in text for tag in ("<a href", "<b>", "<i>"))


def test_equal_values_do_not_get_an_axis_from_zero_to_more_than_one() -> None:
    alike = POINTS.assign(value=0.98)
    for figure in (
        charts.tradeoff(alike, "accuracy", STAR, "Strength λ"),
        charts.against_parameter(alike, "accuracy", STAR, "Strength λ"),
    ):
        low, high = figure.layout.yaxis.range
        assert low < 0.98 < high and high - low < 0.1
    assert charts.tradeoff(POINTS, "accuracy", STAR, "Strength λ").layout.yaxis.range is None
