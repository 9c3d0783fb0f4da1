"""The page and the pictures of recorded studies: every figure has its file, every table its numbers."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from isoviz.studies.result import Axis, Figure, Matrix, Panel, Published, Reference, Result, Series, Table, provenance

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("study_figures")


def result(**fields) -> Result:
    """A small one of IsoBN's study: bars with a bin at zero, two matrices, lines."""
    axis = Axis(label="k")
    bars = Series(name="d", role="measured", group="a", x=[1e-3, 1e-2], y=[30.0, 50.0], at_zero=20.0)
    line = Series(name="none", role="measured", group="none", x=[1.0, 2.0], y=[0.5, 0.75])
    log = Axis(label="σ", log=True)
    half = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    matrix = Panel(title="a", kind="matrix", x_axis=axis, y_axis=axis, matrix=Matrix.of(half))
    drawn = [
        Figure(
            name="sigma", title="spread", place="1", panels=[Panel(kind="bars", x_axis=log, y_axis=axis, series=[bars])]
        ),
        Figure(name="rho", title="|ρ|", place="2", columns=1, panels=[matrix, matrix]),
        Figure(
            name="ev", title="EV", place="4", columns=3, panels=[Panel(x_axis=axis, y_axis=axis, series=[line])] * 2
        ),
    ]
    record = provenance("isobn-figures", "quick", 0, {}, [], 1.0, ["--model", "a/b=DIR"])
    return Result(**{"title": "whole", "figures": drawn, "provenance": record, **fields})


def test_a_page_shows_every_figure_and_table(figures):
    table = Table(title="numbers", header=["task", "EV_1"], rows=[["MRPC", 0.76123], ["RTE", None]], notes=["Printed."])
    number = Published(what="EV_1", published=0.76, reproduced=0.7, where="Table 2")
    text = figures.page(result(tables=[table], published=[number]))
    for name in ("isobn-figures-sigma.svg", "isobn-figures-rho.png", "isobn-figures-ev.svg"):
        assert f"](images/{name})" in text
    assert "| MRPC | 0.761 |" in text
    assert "| RTE | — |" in text
    assert "printed 0.76" not in text  # the tables have it
    assert "`python -m isoviz study run isobn-figures --scale quick --model a/b=DIR`" in text


def test_a_page_without_tables_lists_the_lines_and_the_printed_numbers(figures):
    axis = Axis(label="n")
    line = Series(name="score", role="measured", group="a", x=[64.0], y=[0.5], low=[0.4], high=[0.6], spread="±")
    panel = Panel(x_axis=axis, y_axis=axis, series=[line], references=[Reference(label="truth", axis="y", value=0.9)])
    number = Published(what="line", published=0.86, reproduced=0.87, where="caption")
    text = figures.page(result(figures=[Figure(title="t", place="2", panels=[panel])], published=[number]))
    assert "](images/isobn-figures.svg)" in text
    assert "| 64 | 0.5000 ± 0.1000 |" in text
    assert "- truth\n- printed 0.86, here 0.87000: line (caption)" in text


def test_pictures_are_drawn_and_the_same_each_time(figures, tmp_path):
    from PIL import Image

    complete = result()
    for figure in complete.figures:
        for turn in ("one", "two"):
            figures.draw(figure, tmp_path / turn / figures.image(complete, figure))
        first, second = (tmp_path / turn / figures.image(complete, figure) for turn in ("one", "two"))
        assert first.read_bytes() == second.read_bytes()
    with Image.open(tmp_path / "one" / "isobn-figures-rho.png") as picture:
        assert picture.mode == "P"
        drawn = {colour for _, colour in picture.convert("RGB").getcolors(1 << 16)}
    from matplotlib import colormaps

    for value in (0.0, 0.5, 1.0):  # each entry of the matrix in its own shade, to half a step of each channel
        expected = [255 * channel for channel in colormaps["Blues"](value)[:3]]
        assert any(max(abs(a - b) for a, b in zip(colour, expected, strict=True)) < 5 for colour in drawn)


def test_no_bar_is_cut_by_the_panel_before_it(figures, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(figures, "save", lambda drawn, path: saved.append(drawn))
    panels = [
        Panel(
            kind="bars",
            x_axis=Axis(label="σ", log=True),
            y_axis=Axis(label="%", low=0.0),
            series=[Series(name="d", role="measured", group="a", x=[1e-3, 1e-2], y=[0.0, high], at_zero=1.0)],
        )
        for high in (30.0, 99.0, 60.0)
    ]
    figures.draw(Figure(name="sigma", title="t", place="1", columns=2, panels=panels), tmp_path / "x.svg")
    drawn = [axis for axis in saved[0].axes if axis.patches]
    assert len(drawn) == 3
    for axis in drawn:
        low, high = axis.get_ylim()
        assert low == 0
        assert 99.0 <= high < 120.0
