"""Exported pages are self-contained, make no requests, and escape user input."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.components.figure import prepared
from dashboard.export import html
from dashboard.shared.exported import ExportedFigure, ExportedSentences, ExportedTable
from isoviz import studies, vectors
from isoviz.errors import InputError
from isoviz.runs.store import Store
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import config, fail, finish
from tests.dashboard.saved import saved

NASTY = '<img src="https://example.org/x.png" onerror="alert(1)"> & `code` | <!-- </script>'


class Elements(HTMLParser):
    """Every element of a file with its attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] not in ("script", "style"):
            self.words += data


def sample(figure: go.Figure | None = None) -> str:
    frame = pd.DataFrame({NASTY: [NASTY, "b"], "score": [0.123456, None], "n": [3, 4]})
    figure = figure or go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name=NASTY))
    entries = (
        ExportedSentences("Sentences", (NASTY,)),
        ExportedTable("A table", frame, (NASTY,)),
        ExportedFigure("A figure", prepared(figure).spec, NASTY),
    )
    return html.render(NASTY, "about", entries, {"A command": "python -m isoviz\n```\nx"})


def test_user_input_is_escaped() -> None:
    elements = Elements(sample())
    assert not [tag for tag, _ in elements.found if tag == "img"]
    assert elements.words.count(NASTY) >= 5
    plots = [attributes for _, attributes in elements.found if attributes.get("class") == "plot"]
    assert json.loads(str(plots[0]["data-figure"]))["data"][0]["name"] == NASTY


def test_nothing_in_the_file_names_another_host_to_load_from() -> None:
    elements = Elements(sample())
    assert not [
        name for _, attributes in elements.found for name in ("src", "href", "srcset", "action") if name in attributes
    ]
    policy = next(attributes for tag, attributes in elements.found if tag == "meta" and "http-equiv" in attributes)
    assert str(policy["content"]).startswith("default-src 'none'")
    assert [tag for tag, _ in elements.found].count("script") == 2


def test_what_is_needed_is_in_the_file() -> None:
    """All of plotly only for a figure that needs it; numbers have four digits, gaps are empty."""
    lines, heat = sample(), sample(go.Figure(go.Heatmap(z=[[1, 2]])))
    assert len(heat) > 2 * len(lines)
    assert html.render("t", "a", ()).count("<script") == 0
    assert '<td class="number">0.1235</td>' in lines and '<td class="number"></td>' in lines


def test_an_experiment_has_tables_tests_provenance_and_citations(
    store: Store, open_page: OpenPage, offered: Offered
) -> None:
    for seed in (0, 1, 2):
        finish(store, config("baseline", seed), 0.5 + 0.0625 * seed, 0.25, group="sweep")
        finish(store, config("istar", seed, {"lam": 1}), 0.75, 0.5, group="sweep")
    fail(store, config("isobn"), group="sweep")
    finish(store, config("flow"), 0.5, 0.25, group="other")
    open_page("experiments", experiment="sweep")
    content = offered["isoviz-experiments-sweep.html"]()
    words = Elements(str(content)).words
    assert "7 runs" in words and "1 failed" in words and "other" not in words.split()
    assert "I-STAR λ = 1 − Baseline" in words and "python -m isoviz" in words and "rudman" in words.lower()
    page = saved(content)
    assert len(page.figures) == 1
    assert "Differs?" in page.tables["Do these methods differ?"]
    every = page.tables["Every run"]
    assert len(every) == 7 and every["Remarks"].str.startswith("failed").sum() == 1


def test_a_study_has_its_figure_printed_numbers_and_what_is_open(open_page: OpenPage, offered: Offered) -> None:
    open_page("papers", study="istar-figure-2")
    content = next(make for name, make in offered.items() if name.endswith(".html"))()
    words = Elements(str(content)).words
    open_point = studies.get("istar-figure-2").open_points[0]
    assert "Each published number and ours" in words and "--scale full" in words and open_point in words
    assert "@" in words and len(saved(content).figures) == 1


def test_pages_offer_themselves_to_viewers_too(
    open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch, offered: Offered, tmp_path: Path
) -> None:
    """Each page's file has the page's own numbers, and the app says how to restore it if the file is dropped there."""
    for seed in (0, 1):
        finish(store, config("baseline", seed), 0.5 + 0.25 * seed, 0.25, group="sweep")
    monkeypatch.setenv("ISOVIZ_READ_ONLY", "1")
    two = ["IsoScore", "IsoScore*"]
    means = "Acceptability (demo): accuracy, mean and sample standard deviation over n seeds"
    for page, query, address, title in (
        ("experiments", {"experiment": "sweep"}, "/experiments?experiment=sweep", means),
        ("results", {"results_isotropy": two}, f"/results?{urlencode({'results_isotropy': two}, doseq=True)}", means),
        ("papers", {"study": "istar-figure-2"}, "/papers?papers_paper=I-STAR", "Each published number and ours"),
    ):
        shown = open_page(page, **query)
        assert not shown.exception
        disabled = {button.label: button.disabled for button in shown.get("download_button")}
        assert [button.label for button in shown.get("download_button")].count("Save as one page") == 1
        assert disabled["Save as one page"] is False, page
        content = next(make for name, make in offered.items() if name.startswith(f"isoviz-{page}"))()
        table, on_page = saved(content).tables[title], shown.dataframe[0].value
        assert list(table) == list(on_page)
        numbers = on_page.select_dtypes("number")
        np.testing.assert_allclose(table[numbers.columns].astype(float), numbers.astype(float), atol=5e-4)
        assert saved(content).codes["Restores this page in the app"] == address
        (tmp_path / "page.html").write_text(str(content))
        with pytest.raises(InputError, match=re.escape(f"saved without its vectors; {address} restores it")) as caught:
            vectors.read(tmp_path / "page.html")
        assert caught.value.field == "vectors"
