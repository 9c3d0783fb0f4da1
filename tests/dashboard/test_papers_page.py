"""Papers: printed numbers with their doubts, recorded results, and a study computed with one click."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.papers import drawing, frames, records
from isoviz import studies
from isoviz.jobs import queue
from isoviz.runs.store import Store
from isoviz.studies import figures, jobs, papers, published
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.made_up import finish
from tests.dashboard.reading import drawn, mounted, texts

FIGURE_2 = {"papers_paper": "I-STAR", "papers_istar": "Figure 2"}
FIGURE_3 = {"papers_paper": "I-STAR", "papers_istar": "Figure 3"}
TABLE_2 = {"papers_paper": "IsoBN", "papers_isobn": "Table 2"}


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs wait; no process is started for them."""
    monkeypatch.setattr(queue, "_start_next", lambda: None)


def buttons(page: AppTest) -> dict[str, bool]:
    """Label → whether it can be pressed."""
    return {button.label: not button.disabled for button in page.button}


def some_runs(store: Store, count: int) -> int:
    """Stores `count` finished runs of Figure 3's first task and model, with made-up numbers; returns the planned number."""
    configs = studies.get("istar-figure-3").configs("quick")  # type: ignore[attr-defined]
    for index, cfg in enumerate(configs[:count]):
        finish(store, cfg, 0.5 + 0.015625 * index, 0.25 + 0.0078125 * index)
    return len(configs)


def test_a_recorded_figure_is_on_the_page_at_once_and_one_click_starts_the_quick_study(open_page: OpenPage) -> None:
    page = open_page("papers", **FIGURE_2)
    assert not page.exception
    (figure,) = drawn(page)
    recorded = next(record for record in records.recorded() if record.provenance.study == "istar-figure-2")
    measured = [trace for trace in recorded.figures[0].panels[0].traces if trace.get("showlegend") is not False]
    names = {trace.get("name") for trace in figure["data"] if trace.get("showlegend") is not False}
    assert {trace["name"] for trace in measured} <= names
    assert mounted(page)[0]["name"].startswith("isoviz-istar-figure-2")
    assert "What the paper leaves open" in texts(page) and "section 3" in texts(page)
    assert buttons(page)["Reproduce (quick)"]
    page.button(key="papers_reproduce").click().run()
    assert queue.look(jobs.STUDY, jobs.key_of("istar-figure-2", "quick")).status == "waiting"
    assert "Reproduce (quick)" not in buttons(page) and "Stop" in buttons(page)


def test_a_recorded_result_says_on_how_many_rows_and_is_full_on_the_papers_only(open_page: OpenPage) -> None:
    page = open_page("papers", study="isobn-table-1")
    assert "600 training and 400 evaluation rows a task; 3 epochs; learning rate 0.0002; 5 seeds." in texts(page)
    names = {result.provenance.study: records.Record("recorded", result).name for result in records.recorded()}
    assert names["isobn-table-1"] == "Recorded, reduced" and names["istar-figure-2"] == "Recorded, full"


def test_printed_numbers_are_beside_ours_and_leave_as_files(open_page: OpenPage, offered: Offered) -> None:
    page = open_page("papers", **TABLE_2)
    assert not page.exception
    theirs, beside = page.dataframe[0].value, page.dataframe[1].value
    line = theirs[(theirs["Model"] == "bert-base-cased") & (theirs["Method"] == "IsoBN")].iloc[0]
    assert line["MRPC, EV_1"] == "0.37" and line["CoLA, EV_2"] == "0.37"
    assert {"Printed", "Measured", "Difference"} <= set(beside.columns)
    assert (beside["Difference"] - (beside["Measured"] - beside["Printed"])).abs().max() < 1e-12
    assert beside["Differs from the paper"].str.contains("all-MiniLM-L6-v2, there bert-base-cased").any()
    result = json.loads(offered["isobn-figures-full.json"]())
    assert result["provenance"]["study"] == "isobn-figures"
    assert r"\toprule" in offered["isobn-table-2-2.tex"]()


def test_a_link_to_a_study_by_its_name(open_page: OpenPage) -> None:
    page = open_page("papers", study="istar-figure-2")
    assert page.header[0].value.startswith("Figure 2 ·") and "study" not in page.query_params
    part = open_page("papers", study="isobn-figure-4")  # computed with the paper's other figures
    assert part.header[0].value.startswith("Figure 4 ·") and not part.warning
    lost = open_page("papers", study="figure-of-speech")
    assert not lost.exception and "figure-of-speech" in lost.warning[0].value.replace("\\", "")


def test_local_results_precede_recorded_ones(open_page: OpenPage) -> None:
    recorded = next(record for record in records.recorded() if record.provenance.study == "istar-figure-2")
    origin = recorded.provenance.model_copy(update={"scale": "quick"})
    here = recorded.model_copy(update={"provenance": origin})
    key = jobs.key_of("istar-figure-2", "quick")
    jobs.STUDY.results.publish(key, {"result": here.model_dump(mode="json")}, {})
    page = open_page("papers", **FIGURE_2)
    assert not page.exception and not buttons(page)["Reproduced (quick)"]
    (choice,) = [element for element in page.button_group if element.label == "Result"]
    assert choice.value == "On this machine, quick"


@pytest.mark.parametrize("query", [FIGURE_2, FIGURE_3], ids=["computed", "trained"])
def test_a_viewer_sees_results_and_starts_nothing(
    open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch, query: dict[str, str]
) -> None:
    some_runs(store, 2)
    monkeypatch.setenv("ISOVIZ_READ_ONLY", "1")
    page = open_page("papers", **query)
    button = page.button(key="papers_reproduce")
    assert not page.exception and button.disabled and button.help and drawn(page)


def test_a_study_of_runs_shows_what_there_is_and_launches_the_rest_as_one_experiment(
    open_page: OpenPage, store: Store
) -> None:
    planned = some_runs(store, 5)
    page = open_page("papers", **FIGURE_3)
    assert not page.exception
    assert f"5 of {planned} runs so far" in texts(page) and "Isotropy and performance are inversely" in texts(page)
    points = [trace for figure in drawn(page) for trace in figure["data"] if trace["mode"] == "markers"]
    assert points and all("error_x" in trace for trace in points)
    page.button(key="papers_reproduce").click().run()
    assert not page.exception and "Reproduce (quick)" not in buttons(page)
    queued = store.list(status="queued")
    assert len(queued) == planned - 5 and len({row.group for row in queued}) == 1
    assert str(queued[0].group).startswith("istar-figure-3 ") and not queued[0].visitor
    assert "Reproduce (quick)" not in buttons(open_page("papers", **FIGURE_3)) and len(store.list()) == planned


def test_the_page_opens_on_every_claim_with_its_verdict_and_a_link(
    open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_runs(store, 5)
    page = open_page("papers")
    assert not page.exception
    frame = pd.concat(table.value for table in page.dataframe).set_index("Claim")
    assert len(page.dataframe) == 4  # one tab for each paper
    every = list(dict.fromkeys(entry.study for entry in studies.listed()))
    assert list(frame.index) == [claim.sentence for study in every for claim in study.claims]
    line = frame.loc["Isotropy and performance are inversely related."]
    assert line["Where"] == "papers?study=istar-figure-3#I-STAR,%20Figure%203"
    # 5 of 48 runs of this machine decide nothing, so the recorded result counts until all have finished
    assert line["From"] == "Recorded, reduced" and "16 settings" not in line["Numbers"]
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "on")
    page = open_page("papers")
    counts = pd.concat(table.value for table in page.dataframe)["Verdict"].value_counts()
    assert {"held", "not held", "cannot tell"} <= set(counts.index)
    assert all(f"**{count}** {outcome}" in texts(page) for outcome, count in counts.items())


def test_settings_of_a_number_have_its_colour_and_their_spread() -> None:
    settings = [
        (f"λ = {lam}", lam, (x, x - 0.125, x + 0.25), (0.5, 0.25, 1.0)) for lam, x in ((-5.0, 0.25), (1.0, 0.5))
    ]
    (points,) = draw(figures.axis("IsoScore*"), figures.points("λ", settings)).data
    assert list(points.marker.color) == [-5, 1] and points.marker.cmin == -points.marker.cmax == -5
    assert list(points.error_x.array) == [0.25, 0.25] and list(points.error_x.arrayminus) == [0.125, 0.125]
    assert list(points.error_y.array) == [0.5, 0.5] and list(points.error_y.arrayminus) == [0.25, 0.25]
    lines = [figures.line(f"λ = {lam}", f"λ = {lam}", [4], [(0.5, 0.25, 1.0)], value=lam) for lam in (-1.0, 0.0, 1.0)]
    figure = draw(figures.axis("layer"), lines)
    assert [trace.line.color for trace in figure.data] == ["#2f5be0", "#9aa0aa", "#d9730d"]  # negative, zero, positive
    assert figure.layout.xaxis.dtick == 1  # layers are counted


def draw(x: figures.Axis, traces: list[figures.Trace], references: Sequence[figures.Reference] = ()) -> go.Figure:
    return drawing.panel(figures.panel("", x, figures.axis("score"), traces, references), alone=True)


@pytest.mark.parametrize("source", papers.PAPERS, ids=lambda source: source.slug)
def test_printed_tables_keep_every_number_and_mark_every_doubt(source: papers.Source) -> None:
    for place in source.places:
        if place.startswith("Figure"):
            continue
        cells = published.of(source.slug, place)
        table = frames.as_printed(cells)
        shown = [
            text for text in table.frame.drop(columns=["Model", "Method"], errors="ignore").to_numpy().ravel() if text
        ]
        assert len(shown) == len(cells)
        doubted = [text for text in shown if any(text.endswith(mark) for mark, _ in table.doubts)]
        assert len(doubted) == sum(bool(cell.doubt) for cell in cells)
        assert {reason for _, reason in table.doubts} == {cell.doubt for cell in cells if cell.doubt}
