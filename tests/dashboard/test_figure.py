"""Which script draws a figure, and what of it is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.components import figure as component
from dashboard.server import routes
from dashboard.shared import theme

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The data sent to the browser."""
    payloads: list[dict[str, Any]] = []
    monkeypatch.setattr(component, "_mount", lambda key, data, **_: payloads.append({"key": key, **data}))
    return payloads


def test_lines_and_bars_need_only_the_small_script(sent: list[dict[str, Any]]) -> None:
    figure = go.Figure([go.Scatter(x=[1, 2], y=[3, None]), go.Bar(x=["<b>"], y=[1])])
    figure.update_layout(theme.figure_layout(height=320, yaxis={"title": {"text": "EV_k"}}))
    before = figure.to_json()
    component.draw(figure, key="k", words="two lines")
    component.draw(go.Figure(), key="empty_axes", words="axes", name=None)
    first, empty = sent
    assert first["basic"] and empty["basic"] and first["plotly"] == routes.basic_plotly_path()
    assert (first["key"], first["words"], first["height"], empty["height"]) == ("k", "two lines", 320, 450)
    assert empty["name"] == "empty-axes"  # of the files that it saves
    spec = json.loads(first["spec"])
    assert spec["data"][0]["y"] == [3, None] and spec["layout"]["yaxis"]["title"]["text"] == "EV_k"
    assert "template" not in spec["layout"] and figure.to_json() == before


def test_every_finished_figure_is_ours() -> None:
    """Streamlit's own brings another plotly.js, which offers to upload the figure, and saves dark pages' words on nothing."""
    sources = [path for folder in ("dashboard", "pages") for path in (ROOT / folder).rglob("*.py")]
    assert sources and not [str(path) for path in sources if re.search(r"\bst\.plotly_chart\(", path.read_text())]
