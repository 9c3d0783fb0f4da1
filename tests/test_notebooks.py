"""Every notebook runs from top to bottom in a kernel, from any folder; none is long, and outputs are not kept."""

from __future__ import annotations

import inspect
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import nbformat
import pytest
from nbclient import NotebookClient

import isoviz
from tests import nightly

FOLDER = Path(__file__).parents[1] / "notebooks"
MOST_LINES = 40
SMALLER = ("--max-train 320 --max-eval 200 --epochs 2", "--max-train 64 --max-eval 64 --epochs 1")
"""Runs of a notebook, and what the test trains in their place."""
IN_THE_KERNEL = ("!{python} -m isoviz", "%run -m isoviz")
"""Another process for each command would import everything again."""


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly.cases(sorted(path.name for path in FOLDER.glob("*.ipynb")), always=()))
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8").replace(*SMALLER)
    notebook = nbformat.reads(text, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(len(cell.source.splitlines()) for cell in code) <= MOST_LINES
    assert not any(cell.outputs or cell.execution_count for cell in code)
    for cell in code:
        cell.source = cell.source.replace(*IN_THE_KERNEL)
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    figures = [
        output for cell in code for output in cell.outputs if "application/vnd.plotly.v1+json" in output.get("data", {})
    ]
    assert figures


def test_the_marimo_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells as plain functions: each gets by name what earlier ones return."""
    marimo, cells = MagicMock(), []
    marimo.App.return_value.cell = lambda cell: cells.append(cell) or cell
    marimo.ui.slider.side_effect = lambda *bounds, value, **options: SimpleNamespace(value=value)
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    runpy.run_path(str(FOLDER / "lab.py"))
    shown = MagicMock(wraps=isoviz.show)
    scope: dict[str, Any] = {}
    for cell in cells:
        given = {name: scope[name] for name in inspect.signature(cell).parameters}
        if "isoviz" in given:
            given["isoviz"] = SimpleNamespace(show=shown)
        names = re.findall(r"\w+", inspect.getsource(cell).rpartition("return")[2])
        scope |= dict(zip(names, cell(**given) or (), strict=True))
    (points,), options = shown.call_args
    assert points.shape[0] == len(options["texts"]) == len(options["labels"]) == 2_000
    assert re.search(r"IsoScore 0\.\d+ → 0\.\d+", str(marimo.md.call_args))
