"""The page and the pictures of recorded studies: every figure has its file, every table its numbers."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from isoviz.studies.result import Axis, Figure, Matrix, Panel, Published, Reference, Result, Series, Table, provenance
from tests.missing import missing

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
    for name in ("isobn-figures-sigma.png", "isobn-figures-rho.png", "isobn-figures-ev.png"):
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
    assert "](images/isobn-figures.png)" in text
    assert "| 64 | 0.5000 ± 0.1000 |" in text
    assert "- truth\n- printed 0.86, here 0.87000: line (caption)" in text


def test_pictures_are_drawn(figures, tmp_path):
    from choreographer.browsers.chromium import Chromium

    if Chromium.find_browser(skip_local=False) is None:
        missing("pictures are drawn by a browser")
    from PIL import Image

    complete = result()
    figure = complete.figures[1]  # two matrices, one below the other
    figures.draw(figure, tmp_path / figures.image(complete, figure))
    with Image.open(tmp_path / "isobn-figures-rho.png") as picture:
        assert picture.mode == "P" and picture.width == figures.WIDTH
        pixels = np.asarray(picture.convert("L"))
    halves = np.array_split(pixels, 2)
    assert all((half < 128).mean() > 0.02 for half in halves)
