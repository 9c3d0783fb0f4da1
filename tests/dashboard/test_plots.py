"""The dashboard's figures as functions for notebooks."""

from __future__ import annotations

import base64
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.explore import figures
from dashboard.papers import drawing, records
from isoviz import metrics, plots, studies
from isoviz.errors import InputError
from isoviz.operations.measure import MeasureRequest, measure
from isoviz.runs.examples import SWEEP

POINTS = np.random.default_rng(0).normal(size=(300, 12)) * np.linspace(0.2, 3, 12)


def test_names_are_found_without_a_server_or_a_word(tmp_path: Path) -> None:
    code = "import isoviz.plots as p; print(*dir(p)); p.deviations([[0.0, 1], [1, 3]])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    names = "correlations cosines deviations explained_variance layers points_map study tradeoff"
    assert done.stdout == names + "\n" and done.stderr == ""


def test_figures_of_points_are_those_of_explore() -> None:
    spread = figures.sigma_histogram(metrics.dimension_std(POINTS), "cls")
    assert plots.deviations(POINTS).to_json() == spread.to_json()
    isotropic, curve, share = plots.explained_variance(POINTS).data
    assert list(isotropic.y) == pytest.approx([k / 12 for k in range(1, 13)])
    assert list(curve.y) == pytest.approx(metrics.explained_variance(POINTS))
    assert list(share.y) == pytest.approx(np.diff(metrics.explained_variance(POINTS), prepend=0))
    assert plots.cosines(POINTS).data[1].name == f"mean cosine {metrics.mean_cosine(POINTS):.3f}"
    (heat,) = plots.correlations(np.hstack([POINTS, POINTS[:, :3] * 2, np.ones((300, 1))])).data
    cells = np.frombuffer(base64.b64decode(heat.z["bdata"]), heat.z["dtype"]).reshape(16, 16)
    assert (np.diag(cells) == heat.zmax).all()
    assert (np.diag(cells, 1) == heat.zmax).sum() == 3  # each copy stands beside its original


def test_a_map_is_coloured_by_labels() -> None:
    one, two = plots.points_map(POINTS, ["a", "b"] * 150).data
    assert (one.name, two.name, len(one.x), len(two.x)) == ("a", "b", 150, 150)
    (every,) = plots.points_map(POINTS).data
    assert list(every.text[:2]) == ["0", "1"]
    with pytest.raises(InputError, match="kind"):
        plots.points_map(POINTS, kind="tsne")


def test_layers_of_a_measured_encoder() -> None:
    measured = measure(MeasureRequest(model="demo/tiny-bert", task="demo/sentiment", max_eval=20))
    lines = plots.layers(measured.by_layer, "isoscore").data
    assert len(lines) == len({one.pooling for one in measured.by_layer})
    assert sum(len(line.y) for line in lines) == len(measured.by_layer)
    with pytest.raises(InputError, match="isoscor"):
        plots.layers(measured.by_layer, "isoscor")


def test_runs_of_an_experiment_and_a_recorded_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "on")
    figure = plots.tradeoff(SWEEP, store=tmp_path)
    assert sum(len(trace.x) for trace in figure.data if trace.mode == "markers") >= 39
    with pytest.raises(InputError, match="experiment"):
        plots.tradeoff("nothing", store=tmp_path)
    with pytest.raises(InputError, match="metric"):
        plots.tradeoff(SWEEP, metric="bleu", store=tmp_path)
    first = records.shipped(studies.get("isobn-figures"))[0].result
    assert plots.study("isobn-figures")[0].data[0].to_plotly_json().keys() == (
        drawing.panel(first.figures[0].panels[0], alone=False).data[0].to_plotly_json().keys()
    )


def test_without_plotly_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec: Any = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "plotly" else find_spec(name))
    with pytest.raises(InputError, match=r"isoviz-embeddings\[app\]"):
        plots.deviations  # noqa: B018
