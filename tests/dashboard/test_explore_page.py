"""Explore: empty, running (told by files), finished (a real small view), failed; errors beside their fields."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from dashboard import (
    downloads,
    explore,
    explore_tables,
    resources,
    routes,
    tokens,
    view_arrays,
    wording,
)
from isoviz.exploring import job_folder, jobs, measuring, results
from isoviz.exploring.progress import ProgressFile, write_json
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.exploring.results import ViewResult
from isoviz.models import sources
from isoviz.runs.processes import is_alive
from tests.dashboard.conftest import OpenPage, drawn
from tests.tiny import TinyModels, write, write_cola

ROWS = 24


@pytest.fixture(autouse=True)
def _fresh_cache() -> None:
    st.cache_data.clear()


@pytest.fixture(scope="module")
def made(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> tuple[ViewRequest, dict, dict]:  # type: ignore[type-arg]
    """A small view, really computed: its request, facts and arrays."""
    folder = write_cola(tmp_path_factory.mktemp("data") / "cola")
    request = ViewRequest(str(tiny_models("bert")), "glue/cola", str(folder), max_rows=ROWS)
    return request, *measuring.compute(request, lambda done, total, text: None)


@pytest.fixture
def finished(made: tuple[ViewRequest, dict, dict]) -> ViewResult:  # type: ignore[type-arg]
    """That view, where the pages of this test find it."""
    request, facts, arrays = made
    key = key_for(request)
    results.publish(results.root() / "jobs" / key / "result", key, facts, arrays, at=results.root())
    found = results.find(key)
    assert found is not None
    return found


def key_for(request: ViewRequest) -> str:
    return key_of(request, sources.resolve(request.model), rows_of(request.task, request.data))


def address(request: ViewRequest, **more: str) -> dict[str, str]:
    data = {f"explore_data.{request.task}": request.data} if request.data else {}
    asked = {"explore_model": request.model, "explore_task": request.task, "explore_rows": str(request.max_rows)}
    return {**asked, **data, **more}


def errors(page: AppTest) -> list[str]:
    assert not page.exception
    return [error.value.replace("\\", "") for error in page.error]


def texts(page: AppTest) -> str:
    shown = [*page.markdown, *page.caption, *page.subheader]
    return "\n".join(element.value for element in shown).replace("\\", "")


def charts(page: AppTest) -> list[dict]:  # type: ignore[type-arg]
    """Figures in the order of the page, the layer profile first."""
    return drawn(page)


def test_first_visit_says_what_will_be_here(open_page: OpenPage) -> None:
    page = open_page("explore")
    assert errors(page) == []
    assert "Nothing to see yet" in texts(page)
    assert "the first 500 of 500 rows of validation" in texts(page)
    assert not page.button(key="explore_look").disabled


def test_look_starts_the_job_of_what_the_form_says(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[ViewRequest, str]] = []

    def start(request: ViewRequest, key: str) -> jobs.State:
        started.append((request, key))
        return jobs.State("running")

    monkeypatch.setattr(jobs, "start", start)
    page = open_page("explore", explore_rows="40", explore_split="train")
    page.button(key="explore_look").click().run()
    assert errors(page) == []
    expected = ViewRequest("demo/tiny-bert", "demo/acceptability", split="train", max_rows=40)
    assert started == [(expected, key_for(expected))]


def test_running_job_is_told_and_can_be_stopped(open_page: OpenPage) -> None:
    request = ViewRequest("demo/tiny-bert", "demo/acceptability")
    folder = results.root() / "jobs" / key_for(request)
    folder.mkdir(parents=True)
    write_json(folder / job_folder.REQUEST, request.as_json())
    # A process of the test's own stands in for the worker.
    stand_in = subprocess.Popen(["sleep", "600"], start_new_session=True)
    born = psutil.Process(stand_in.pid).create_time()
    try:
        write_json(folder / job_folder.PROCESS, {"pid": stand_in.pid, "started": born})
        ProgressFile(folder)(300, 1000, "reading texts, 300 of 500 rows")
        page = open_page("explore")
        assert errors(page) == []
        (bar,) = page.get("progress")
        assert bar.proto.value == 30
        assert "30 %" in bar.proto.text and "reading texts, 300 of 500 rows" in bar.proto.text.replace("\\", "")
        assert page.button(key="explore_look").disabled and "Nothing to see yet" not in texts(page)
        assert [chart["data"] for chart in charts(page)] == [[]]  # empty axes, so that the browser has what draws
        page.button(key="explore_stop").click().run()
        assert errors(page) == [] and not page.get("progress")
        assert not is_alive(stand_in.pid, born) and not folder.exists()
        assert not page.button(key="explore_look").disabled
    finally:
        stand_in.kill()


def test_view_without_its_last_numbers_is_shown_while_they_are_computed(
    open_page: OpenPage,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    request, facts, arrays = made
    key = key_for(request)
    soon = [{**entry, "twonn": None, "warnings": ["twonn is still being computed"]} for entry in facts["entries"]]
    folder = results.root() / "jobs" / key
    folder.mkdir(parents=True)
    soon_told = {"reason": "it is still being measured"}
    early = {**facts, "output": soon_told, "entries": soon, "pending": measuring.PENDING}
    early |= {"layers": None, "shrinkage": {"reason": "it is still being computed, from training tokens"}}
    results.publish(folder / "result", key, early, arrays, at=results.root())
    write_json(folder / job_folder.REQUEST, request.as_json())
    stand_in = subprocess.Popen(["sleep", "600"], start_new_session=True)
    born = psutil.Process(stand_in.pid).create_time()
    try:
        write_json(folder / job_folder.PROCESS, {"pid": stand_in.pid, "started": born})
        ProgressFile(folder)(700, 1000, "looking for neighbours (TwoNN), 3 of 9 clouds")
        at = address(request, explore_measure="Intrinsic dimension (TwoNN)")
        page = open_page("explore", **at)
        assert errors(page) == [] and len(charts(page)) == 5
        assert "neighbours (TwoNN), 3 of 9 clouds" in page.get("progress")[0].proto.text.replace("\\", "")
        assert "Not all numbers are there yet: Intrinsic dimension (TwoNN), output matrix, IsoScore*." in texts(page)
        assert "There is no IsoScore*: it is still being computed, from training tokens." in texts(page)
        assert "TwoNN is still being computed" in texts(page)
        assert page.button(key="explore_stop")
        jobs.stop(key)  # AppTest cannot press in a page whose model is a folder
        page = open_page("explore", **at)
        assert not is_alive(stand_in.pid, born) and errors(page) == []
        assert len(charts(page)) == 5 and not page.button(key="explore_look").disabled
        assert results.finish(key, facts, at=results.root())
        page = open_page("explore", **at)
        assert not page.get("progress") and "Not all numbers" not in texts(page)
        assert page.button(key="explore_look").disabled
    finally:
        stand_in.kill()


def test_vanished_worker_is_told_with_the_way_on(open_page: OpenPage) -> None:
    request = ViewRequest("demo/tiny-bert", "demo/acceptability")
    folder = results.root() / "jobs" / key_for(request)
    folder.mkdir(parents=True)
    write_json(folder / job_folder.REQUEST, request.as_json())
    write_json(folder / job_folder.PROCESS, {"pid": 2**22 + 1, "started": 1.0})
    (folder / job_folder.LOG).write_text("<b>the last words</b>")
    page = open_page("explore")
    assert "is gone" in errors(page)[0] and "take fewer rows" in errors(page)[0]
    assert page.button(key="explore_look").label == "Look again"
    assert page.code[0].value == "<b>the last words</b>"


def test_failed_job_is_told_beside_its_field(open_page: OpenPage) -> None:
    request = ViewRequest("demo/tiny-bert", "demo/acceptability")
    folder = results.root() / "jobs" / key_for(request)
    folder.mkdir(parents=True)
    write_json(folder / job_folder.REQUEST, request.as_json())
    error = {"message": "max_rows: these clouds need 9 GiB (allowed: 4)", "field": "max_rows", "advice": "Take fewer."}
    write_json(folder / job_folder.ERROR, error)
    page = open_page("explore")
    assert errors(page) == ["These clouds need 9 GiB (allowed: 4). Take fewer."]
    assert not page.button(key="explore_look").disabled


def test_finished_view_is_shown_at_once_with_its_numbers(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    page = open_page("explore", **address(made[0]))
    assert errors(page) == [] and "Nothing to see yet" not in texts(page)
    assert len(charts(page)) == 5  # the map and the matrix are components
    shown = page.dataframe[0].value
    assert len(shown) == 10 and list(shown.columns) == list(explore_tables.COLUMNS.values())
    entry = finished.entry(2, "cls")
    line = shown[(shown["Layer"] == 2) & (shown["Pooling"] == "cls")].iloc[0]
    assert (line["n"], line["d"]) == (ROWS, 16)
    assert line["IsoScore"] == entry["isoscore"] and line["EV₁"] == entry["ev"][0]
    assert "n = 24, d = 16" in texts(page)
    assert f"The first {ROWS} of 32 rows of validation" in texts(page)


def test_measure_layer_and_pooling_live_in_the_address(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    chosen = {"explore_measure": "Average cosine", "explore_layer": "1", "explore_pooling": "mean"}
    page = open_page("explore", **address(made[0], **chosen))
    assert errors(page) == []
    assert page.slider(key="explore_layer").value == 1
    profile = charts(page)[0]
    assert profile["layout"]["yaxis"]["title"]["text"] == "Average cosine"
    lines = {trace["name"]: trace["y"] for trace in profile["data"]}
    assert lines["first token [CLS]"] == [finished.entry(layer, "cls")["mean_cosine"] for layer in range(3)]
    assert "Layer 1, mean of the tokens" in texts(page)


def test_what_a_measure_cannot_see_is_said(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    page = open_page("explore", **address(made[0]))
    assert "How evenly the variance is spread over all d directions." in texts(page)
    assert "Cannot see the mean" in texts(page)
    page = open_page("explore", **address(made[0], explore_measure="Length of the mean vector"))
    assert errors(page) == [] and "How far the centre of the cloud lies from the origin" in texts(page)


def test_layer_of_a_deeper_model_falls_back_to_the_last(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    page = open_page("explore", **address(made[0], explore_layer="11"))
    assert errors(page) == [] and page.slider(key="explore_layer").value == 2


def test_a_number_tells_on_how_many_points_it_was_taken(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    n = finished.entry(2, "tokens")["n"]
    more = {"explore_pooling": "tokens", "explore_measure": "IsoScore, unbiased"}
    page = open_page("explore", **address(made[0], **more))
    rows = finished.facts["rows"]
    assert errors(page) == [] and f"(n = {rows} of {n}, d = " in texts(page)  # tokens of one row are not independent
    hover = next(line for line in charts(page)[0]["data"] if line["name"] == "every token")["customdata"]
    assert hover[2] == [f"{rows} of {n}", finished.entry(2, "tokens")["d"]]
    assert "drawn at random; the mean is of all" not in texts(page)

    facts = {**finished.facts, "token_sample": 30}
    write_json(finished.folder / results.PROFILE, facts)
    told = "The picture is of 30 of these points, drawn at random; the mean is of all."
    assert told in texts(open_page("explore", **address(made[0], **more)))
    assert explore_tables.points_of({"n": 5184, "twonn_points": 2000}, "twonn") == "2,000 of 5,184"
    assert explore_tables.points_of({"n": 5184}, "twonn") == "5,184"  # of a measure that is still pending


def test_what_few_points_do_to_a_number_is_told_beside_it(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    told = "below 5: IsoScore, participation ratio and effective rank read low and EV high; only the unbiased IsoScore"
    page = open_page("explore", **address(made[0]))
    n, d = (finished.entry(2, "cls")[name] for name in ("n", "d"))
    assert told in texts(page) and f"Reads high for so few points: n/d = {n / d:.2g}." in texts(page)
    for measure in ("IsoScore, unbiased", "Average cosine"):
        assert told not in texts(open_page("explore", **address(made[0], explore_measure=measure)))
    entry = {"twonn": None, "warnings": ["twonn is undefined: it needs at least 3", "isoscore reads low"]}
    assert explore_tables.notes_on(entry, "twonn") == ["TwoNN is undefined: it needs at least 3"]
    assert explore_tables.notes_on({"twonn": None, "warnings": ["why"]}, "twonn") == ["why"]


def test_mean_correlation_of_every_layer(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    page = open_page("explore", **address(made[0], explore_measure="Mean |ρ| of two dimensions"))
    line = next(line for line in charts(page)[0]["data"] if line["name"] == "mean of the tokens")
    assert line["y"] == [finished.entry(layer, "mean")["abs_correlation"] for layer in range(3)] and errors(page) == []


def test_numbers_behind_the_figures_are_files(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    table = explore_tables.behind(finished, 1, "mean")
    for name in ("sigma", "mean"):
        part = table[table.figure == name]
        assert part["at"].tolist() == list(range(len(part))) and set(part.layer) == {1}
        np.testing.assert_array_equal(part["value"], finished.array(1, "mean", name))
    spectra = table[table.figure == "ev"]
    assert set(spectra.layer) == {0, 1, 2} and spectra["at"].min() == 1
    np.testing.assert_array_equal(spectra[spectra.layer == 2]["value"], finished.array(2, "mean", "ev"))
    cosines = table[table.figure == "cosine"]
    pairs = finished.facts["rows"] * (finished.facts["rows"] - 1) // 2
    assert (cosines["at"].min(), cosines["at"].iloc[100], cosines["value"].sum()) == (-1, 0, pairs)
    back = pd.read_parquet(io.BytesIO(downloads.parquet(table)))
    pd.testing.assert_frame_equal(back, table)
    offered = [button.proto.label for button in open_page("explore", **address(made[0])).get("download_button")]
    assert offered.count("Parquet") == offered.count("CSV") >= 3  # of the map, of these figures, of all numbers


def test_what_no_field_can_take_of_an_address_is_told(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    wrong = {
        "explore_layer": "abc",
        "explore_split": "test",
        "explore_points": "7",
        "explore_own": "x" * 9,
        "unit": "3",
    }
    usual = {"explore_min_dist": "0.10", "explore_map": "PCA", "explore_neighbours": "15"}
    page = open_page("explore", **address(made[0], **wrong, **usual))
    assert errors(page) == [] and page.slider(key="explore_layer").value == 2
    (told,) = page.toast
    assert told.value.replace("\\", "").endswith("left out: explore_layer=abc, explore_split=test, explore_points=7")
    assert not open_page("explore", **address(made[0], explore_layer="1")).toast


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("/no/such/dir", "o such model or directory"),
        ("some/encoder", "set; start again without it to ask the hub); use a bundled model"),
        ("not a model!", "neither a directory nor a hub id"),
    ],
)
def test_unknown_model_is_told_with_what_to_do(model: str, told: str, open_page: OpenPage) -> None:
    page = open_page("explore", explore_model=model)
    (error,) = errors(page)
    assert told in error and page.button(key="explore_look").disabled


def test_directory_that_is_no_model(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("explore", explore_model=str(tmp_path))
    assert "holds no model (no config.json)" in errors(page)[0]


def test_paper_task_wants_a_folder(open_page: OpenPage, cola: Path, tmp_path: Path) -> None:
    page = open_page("explore")
    page.selectbox(key="explore_task").set_value("glue/cola").run()
    assert errors(page) == [] and page.button(key="explore_look").disabled
    page.text_input(key="explore_data.glue/cola").set_value(str(tmp_path / "nowhere")).run()
    assert "is not a folder that this machine can read" in errors(page)[0]
    page.text_input(key="explore_data.glue/cola").set_value(str(cola)).run()
    assert errors(page) == [] and not page.button(key="explore_look").disabled
    assert "the first 32 of 32 rows" in texts(page)


def test_a_translation_is_read_in_the_direction_of_the_form(open_page: OpenPage, tmp_path: Path) -> None:
    data = str(write("seq2seq", tmp_path / "ro-en"))
    asked = {"explore_task": "wmt16/ro-en", "explore_data.wmt16/ro-en": data}
    page = open_page("explore", **asked)
    assert errors(page) == [] and page.segmented_control(key="explore_direction.wmt16/ro-en").value == "ro-en"
    page.segmented_control(key="explore_direction.wmt16/ro-en").set_value("en-ro").run()
    request = ViewRequest("demo/tiny-bert", "wmt16/ro-en", data, max_rows=500, direction="en-ro")
    folder = results.root() / "jobs" / key_for(request)
    folder.mkdir(parents=True)
    write_json(folder / job_folder.REQUEST, request.as_json())
    write_json(folder / job_folder.ERROR, {"message": "this very one", "field": None, "advice": ""})
    page.run()
    assert errors(page) == ["This very one."]
    page.segmented_control(key="explore_views").set_value(2).run()
    copied = (
        page.segmented_control(key="explore2_direction.wmt16/ro-en").value,
        page.text_input(key="explore2_data.wmt16/ro-en").value,
    )
    assert copied == ("en-ro", data)


def test_downloads_hold_every_number(finished: ViewResult) -> None:
    table = explore_tables.frame(finished.entries)
    lines = downloads.csv(table).decode("utf-8-sig").splitlines()
    assert len(lines) == 10 and lines[0].startswith("layer,pooling,n,d,isoscore,")
    assert float(lines[2].split(",")[4]) == finished.entries[1]["isoscore"]
    assert (
        finished.entries[0]["isoscore"] is None and lines[1].split(",")[4] == ""
    )  # [CLS] before any layer is one point
    text = explore_tables.latex(table, "a_model on 100 % of it")
    assert r"a\_model on 100 \% of it" in text and text.count(r"\\") == 10 and "$EV_1$" in text


def test_isoscore_star_of_every_layer_and_of_all_together(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    chosen = {"explore_measure": "IsoScore*", "explore_layer": "1", "explore_pooling": "tokens"}
    page = open_page("explore", **address(made[0], **chosen))
    assert errors(page) == []
    together = finished.together
    assert together is not None
    profile = charts(page)[0]
    assert profile["layout"]["yaxis"]["title"]["text"] == "IsoScore*"
    lines = {trace["name"]: trace["y"] for trace in profile["data"]}
    assert lines["every token"] == [finished.entry(layer, "tokens")["isoscore_star"] for layer in range(3)]
    assert lines["first token [CLS]"] == [None] * 3
    assert [trace["showlegend"] for trace in profile["data"]] == [False, False, True]
    told = texts(page)
    value, n = wording.number(together["isoscore_star"]), wording.number(together["n"])
    assert f"Every token of layers 1 to 2 as one cloud (cloud layers): {value} (n = {n}, d = 16)" in told
    words = f"IsoScore*: {finished.facts['shrinkage']['words']}."
    assert words.startswith("IsoScore*: ζ = 0.2, Σ_S from ") and told.count(words) == 2  # here, and below all numbers
    assert "covariance of that layer's tokens in rows of the training split" in told
    shown = page.dataframe[0].value
    last = shown.iloc[-1]
    assert last["IsoScore*"] == together["isoscore_star"] and last["n"] == together["n"]
    assert shown["Layer"].isna().sum() == 1 and "as one cloud" in told
    page = open_page("explore", **address(made[0], explore_measure="IsoScore*"))
    assert errors(page) == [] and "Layer 2, cls: undefined" in texts(page)
    assert "IsoScore* is undefined: Σ_S is of training tokens" in texts(page)


def test_page_is_drawn_anew_for_each_stage_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(st, "rerun", lambda: drawn.append("anew"))
    views = {"pending": ["twonn", "isoscore_star"]}
    monkeypatch.setattr(results, "find", lambda key: ViewResult(Path("x"), views))
    running = jobs.State("running")
    explore._again_if_there(running, "k", None)  # its first pictures
    assert drawn == ["anew"]
    explore._again_if_there(running, "k", ("twonn", "isoscore_star"))
    assert drawn == ["anew"]
    explore._again_if_there(running, "k", ("twonn", "output matrix", "isoscore_star"))
    explore._again_if_there(jobs.State("done"), "k", ("isoscore_star",))
    assert drawn == ["anew"] * 3


def test_downloads_hold_all_layers_together(finished: ViewResult) -> None:
    assert finished.together is not None
    table = explore_tables.frame([*finished.entries, finished.together])
    back = pd.read_csv(io.BytesIO(downloads.csv(table)))
    assert len(back) == 10 and back["layer"].isna().tolist() == [False] * 9 + [True]
    assert back["isoscore_star"].iloc[-1] == finished.together["isoscore_star"]
    assert back["isoscore_star"].notna().sum() == 4  # three layers of tokens, and these
    assert [line.split(",")[0] for line in downloads.csv(table).decode("utf-8-sig").splitlines()][-2:] == ["2", ""]
    text = explore_tables.latex(table, explore_tables.of_shrinkage(finished.facts["shrinkage"]))
    assert r"IsoScore*: $\zeta$ = 0.2, $\Sigma_S$ from " in text and "IsoScore*" in text.split(r"\toprule")[1]
    (last,) = [line for line in text.splitlines() if line.startswith("-- & tokens")]
    assert f"{finished.together['isoscore_star']:.3f}" in last


# ------------------------------------------------------------------------------------------------- figures by themselves


def test_cut_axis_is_told_with_the_outlier_and_its_value(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    request, facts, arrays = made
    mean = np.linspace(-0.5, 0.5, 16, dtype=np.float32)
    mean[4] = -7.25
    entries = [
        {**entry, "outlier_dimensions": [4] if (entry["layer"], entry["pooling"]) == (2, "cls") else []}
        for entry in facts["entries"]
    ]
    shutil.rmtree(finished.folder)
    key = key_for(request)
    changed = arrays | {results.array_name(2, "cls", "mean"): mean}
    results.publish(results.root() / "new", key, {**facts, "entries": entries}, changed, at=results.root())
    page = open_page("explore", **address(request))
    assert errors(page) == []
    told = "Outlier dimensions: 4; the axis is cut to −0.7 to 0.7, so that the rest is seen; beyond it: dimension 4 at −7.25."
    assert told in texts(page)


def test_axis_of_the_spectrum_lives_in_the_address(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    def axis(page: AppTest) -> str | None:
        assert errors(page) == []
        (found,) = [c["layout"] for c in charts(page) if c["layout"]["yaxis"]["title"]["text"] == "EV_k"]
        return found["xaxis"].get("type")

    assert axis(open_page("explore", **address(made[0]))) is None
    assert axis(open_page("explore", **address(made[0], explore_ev_axis="log axis"))) == "log"


# --------------------------------------------------------------------------------------------------- the output matrix


def test_an_encoder_alone_has_no_output_matrix_and_says_so(
    open_page: OpenPage,
    finished: ViewResult,
    made: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    page = open_page("explore", **address(made[0]))
    assert errors(page) == [] and "Output matrix" in texts(page)
    assert "This checkpoint is an encoder alone" in texts(page)


# -------------------------------------------------------------------------------------------------- arrays by their route


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=routes.routes()))


def allowed(*keys: str) -> dict[str, str]:
    return {routes.TOKEN_HEADER: tokens.issue(resources.store().folder, [view_arrays.subject(key) for key in keys])}


@pytest.mark.parametrize("layer", [1, 2])
def test_matrix_comes_as_half_a_triangle_with_its_order(layer: int, client: TestClient, finished: ViewResult) -> None:
    key = finished.folder.name
    path = f"/isoviz/views/{key}/{layer}/cls"
    cells = np.frombuffer(client.get(f"{path}/matrix", headers=allowed(key)).content, np.uint8)
    order = np.frombuffer(client.get(f"{path}/order", headers=allowed(key)).content, "<i4")
    assert sorted(order) == list(range(16)) and len(cells) == 16 * 15 // 2
    kept = finished.array(layer, "cls", "correlation")
    assert (kept is None) is (layer == 1)  # made when it is asked for, from the kept points
    points = np.abs(np.corrcoef(finished.points(layer, "cls"), rowvar=False))[np.ix_(order, order)]
    exact = points if kept is None else kept / 255
    places = [(row, column) for row in range(16) for column in range(row)]
    for cell, place in zip(cells, places, strict=True):
        assert cell / 255 == pytest.approx(exact[place], abs=0.51 / 255)
    sigma = np.frombuffer(client.get(f"{path}/sigma", headers=allowed(key)).content, "<f4")
    np.testing.assert_array_equal(sigma, finished.array(layer, "cls", "sigma"))


def test_a_matrix_of_1024_dimensions_is_small() -> None:
    cells = np.arange(1024 * 1024, dtype=np.uint32).astype(np.uint8).reshape(1024, 1024)
    sent = view_arrays.triangle(cells)
    assert sent[:3] == bytes([cells[1, 0], cells[2, 0], cells[2, 1]]) and len(sent) + 2 * 4 * 1024 <= 600_000


def test_arrays_of_a_view_go_to_its_page_alone(client: TestClient, finished: ViewResult) -> None:
    key = finished.folder.name
    for headers in ({}, allowed("0" * 32), {routes.TOKEN_HEADER: tokens.issue(resources.store().folder, [key])}):
        assert client.get(f"/isoviz/views/{key}/1/cls/order", headers=headers).status_code == 403
    for path in (f"{key}/1/cls/cloud", f"{key}/9/cls/order", f"{key}/1/last/matrix", f"{'0' * 32}/1/cls/order"):
        assert client.get(f"/isoviz/views/{path}", headers=allowed(key, "0" * 32)).status_code == 404
