"""Figures: one mark per run, escaped text, levels of runs without the parameter."""

from __future__ import annotations

from dashboard import charts, tables, theme
from tests.dashboard.made_up import config, result, row

RUNS = [
    row("r1", config("istar", 0, {"lam": -1}), found=result(0.75, 0.125)),
    row("r2", config("istar", 1, {"lam": -1}), found=result(0.25, 0.375)),
    row("r3", config("istar", 0, {"lam": 1}), found=result(0.5, 0.625)),
    row("r4", config("baseline"), found=result(0.5, 0.25)),
]
POINTS = tables.points(tables.runs_frame(RUNS), "accuracy", "lam")


def test_tradeoff_has_one_mark_per_run_and_colour_by_parameter() -> None:
    figure = charts.tradeoff(POINTS, "accuracy", "Strength λ")
    swept, plain, *legend = figure.data
    assert [trace.name for trace in legend] == ["I-STAR", "Baseline"]
    assert (list(swept.x), list(swept.y)) == ([0.125, 0.375, 0.625], [0.75, 0.25, 0.5])
    assert list(swept.marker.color) == [-1, -1, 1] and swept.marker.symbol == theme.method_symbol("istar")
    assert plain.marker.color == theme.method_colour("baseline") and [data[4] for data in plain.customdata] == ["r4"]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-1, 1)
    assert figure.layout.uirevision


def test_tradeoff_without_parameter_hides_the_colour_bar() -> None:
    figure = charts.tradeoff(tables.points(tables.runs_frame(RUNS[3:]), "accuracy", "lam"), "accuracy", "Strength λ")
    assert figure.layout.coloraxis.showscale is False


def test_sweep_draws_means_runs_and_the_baselines_level() -> None:
    figure = charts.against_parameter(POINTS, "value", "accuracy", "Strength λ")
    line, marks, level = figure.data
    assert (list(line.x), list(line.y)) == ([-1, 1], [0.5, 0.5])
    assert list(marks.x) == [-1, -1, 1]
    assert figure.layout.shapes[0].y0 == 0.5 and level.name == "Baseline 0.500 (n = 1)"


def test_strip_shows_every_seed_and_the_mean() -> None:
    runs = tables.runs_frame(RUNS[:3])
    figure = charts.seed_strip(runs.assign(row=runs["variant"]), "accuracy", [("majority", 0.5)])
    seeds, means, level = figure.data
    assert list(seeds.x) == [0.75, 0.25, 0.5] and list(seeds.y) == ["λ = −1", "λ = −1", "λ = 1"]
    assert list(means.x) == [0.5, 0.5]
    assert level.name == "majority 0.500" and figure.layout.shapes[0].x0 == 0.5


def test_text_from_data_is_escaped() -> None:
    runs = tables.runs_frame(RUNS[:1]).assign(problem="<a href='x'>", row="<b>row</b>")
    figure = charts.seed_strip(runs, "accuracy", [("<i>", 0.5)])
    text = figure.to_json()
    assert not any(tag in text for tag in ("<a href", "<b>", "<i>"))


def test_equal_values_do_not_get_an_axis_from_zero_to_more_than_one() -> None:
    alike = POINTS.assign(value=0.98)
    for figure in (
        charts.tradeoff(alike, "accuracy", "Strength λ"),
        charts.against_parameter(alike, "value", "accuracy", "Strength λ"),
    ):
        low, high = figure.layout.yaxis.range
        assert low < 0.98 < high and high - low < 0.1
    assert charts.tradeoff(POINTS, "accuracy", "Strength λ").layout.yaxis.range is None
