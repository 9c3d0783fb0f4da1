"""Every notebook runs from top to bottom in a kernel, from any folder; none is long, and outputs are not kept."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests import nightly

FOLDER = Path(__file__).parents[1] / "notebooks"
MOST_LINES = 40
SMALLER = ("--max-train 320 --max-eval 200 --epochs 2", "--max-train 64 --max-eval 64 --epochs 1")
"""Runs of a notebook, and what the test trains in their place."""
IN_THE_KERNEL = ("!{python} -m isoviz", "%run -m isoviz")
"""Another process for each command would import everything again."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", nightly.cases(sorted(path.name for path in FOLDER.glob("*.ipynb")), always=["isobn_run.ipynb"])
)
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
