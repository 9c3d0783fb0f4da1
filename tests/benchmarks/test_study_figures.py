"""The page and the pictures of recorded studies: every figure has its file, every table its numbers."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from isoviz.studies import figures
from isoviz.studies.result import Figure, Published, Result, Table, provenance
from tests.missing import missing

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("study_figures")


def result(**fields) -> Result:
    """A small one of IsoBN's study: bars with a bin at zero, two matrices, lines."""
    axis = figures.axis("k")
    bars = figures.log_bars("", "σ", [1e-3, 1e-2], [30.0, 50.0], 20.0, axis)
    line = figures.line("none", "baseline", [1.0, 2.0], [(0.5, 0.5, 0.5), (0.75, 0.75, 0.75)], spread=False)
    matrix = figures.matrix("a", np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    drawn = [
        Figure(name="sigma", title="spread", place="1", panels=[bars]),
        Figure(name="rho", title="|ρ|", place="2", columns=1, panels=[matrix, matrix]),
        Figure(name="ev", title="EV", place="4", columns=3, panels=[figures.panel("", axis, axis, [line])] * 2),
    ]
    record = provenance("isobn-figures", "quick", 0, {}, [], 1.0, ["--model", "a/b=DIR"])
    return Result(**{"title": "whole", "figures": drawn, "provenance": record, **fields})


def test_a_page_shows_every_figure_and_table(script):
    table = Table(title="numbers", header=["task", "EV_1"], rows=[["MRPC", 0.76123], ["RTE", None]], notes=["Printed."])
    number = Published(what="EV_1", published=0.76, reproduced=0.7, where="Table 2")
    text = script.page(result(tables=[table], published=[number]))
    for name in ("isobn-figures-sigma.png", "isobn-figures-rho.png", "isobn-figures-ev.png"):
        assert f"](images/{name})" in text
    assert "| MRPC | 0.761 |" in text
    assert "| RTE | — |" in text
    assert "printed 0.76" not in text  # the tables have it
    assert "`isoviz study run isobn-figures --scale quick --model a/b=DIR`" in text


def test_a_page_without_tables_lists_the_lines_and_the_printed_numbers(script):
    axis = figures.axis("n")
    line = figures.line("score", "a", [64.0], [(0.5, 0.4, 0.6)])
    panel = figures.panel("", axis, axis, [line], [("truth", "y", 0.9)])
    number = Published(what="line", published=0.86, reproduced=0.87, where="caption")
    text = script.page(result(figures=[Figure(title="t", place="2", panels=[panel])], published=[number]))
    assert "](images/isobn-figures.png)" in text
    assert "| 64 | 0.5000 ± 0.1000 |" in text
    assert "- truth\n- printed 0.86, here 0.87000: line (caption)" in text


def test_pictures_are_drawn(script, tmp_path):
    from choreographer.browsers.chromium import Chromium

    if Chromium.find_browser(skip_local=False) is None:
        missing("pictures are drawn by a browser")
    from PIL import Image

    complete = result()
    figure = complete.figures[1]  # two matrices, one below the other
    script.draw(figure, tmp_path / script.image(complete, figure))
    with Image.open(tmp_path / "isobn-figures-rho.png") as picture:
        assert picture.mode == "P" and picture.width == script.WIDTH
        pixels = np.asarray(picture.convert("L"))
    halves = np.array_split(pixels, 2)
    assert all((half < 128).mean() > 0.02 for half in halves)
