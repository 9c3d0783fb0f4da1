"""Explore: empty, running (told by files), finished (a real small view), failed; errors beside their fields; its address and numbers."""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

from dashboard.explore import numbers
from dashboard.export.html import render, vectors_inside
from dashboard.shared import downloads, job_progress, wording
from dashboard.shared.job_progress import WatchedJob
from isoviz import metrics, tasks, vectors
from isoviz.exploring import encoders, layers, measuring, results, similarity
from isoviz.exploring.jobs import VIEW
from isoviz.exploring.request import ViewRequest
from isoviz.exploring.results import ViewResult
from isoviz.jobs import queue
from isoviz.jobs.kinds import Progress
from isoviz.jobs.queue import JobState
from isoviz.models.extract import encode
from isoviz.operations.access.service import Service
from tests.dashboard.conftest import Offered, Opened, OpenPage
from tests.dashboard.reading import ROWS, address, drawn, errors, key_for, texts
from tests.dashboard.saved import saved
from tests.jobs.here import fail_job, put_job
from tests.models.sentence_folders import make
from tests.tiny import TinyModels, write


def test_the_button_starts_the_job_of_the_form(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[ViewRequest, str]] = []

    def start(request: ViewRequest, key: str) -> JobState:
        started.append((request, key))
        return JobState("running")

    monkeypatch.setattr(Service, "start_view", lambda _, *asked: start(*asked))
    page = open_page("explore", explore_rows="40", explore_split="train")
    assert "Pick a model and a task, then press Analyse" in texts(page)
    page.button(key="explore_look").click().run()
    assert errors(page) == []
    expected = ViewRequest("demo/tiny-bert", "demo/acceptability", split="train", max_rows=40)
    assert started == [(expected, key_for(expected))]


def test_page_waits_a_moment_for_the_first_results() -> None:
    news, place = iter([False, False, True]), MagicMock()
    job_progress.await_news([WatchedJob("", lambda: JobState("running"), MagicMock(), news.__next__)], 60.0, place)
    assert place.progress.call_count == 1 and place.empty.called


def test_running_job_is_shown_and_can_be_stopped(open_page: OpenPage) -> None:
    request = ViewRequest("demo/tiny-bert", "demo/acceptability")
    put_job(VIEW, key_for(request), "running", progress=Progress(300, 1000, "reading texts, 300 of 500 rows"))
    page = open_page("explore")
    assert errors(page) == []
    (bar,) = page.get("progress")
    assert bar.proto.value == 30
    assert "30 %" in bar.proto.text and "reading texts, 300 of 500 rows" in bar.proto.text.replace("\\", "")
    assert page.button(key="explore_look").disabled and "Pick a model and a task, then press Analyse" not in texts(page)
    page.button(key="explore_stop").click().run()
    assert errors(page) == [] and not page.get("progress")
    assert queue.look(VIEW, key_for(request)).status == "none" and not page.button(key="explore_look").disabled


def test_view_without_its_last_numbers_is_shown_while_they_are_computed(
    open_page: OpenPage,
    explored: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    request, facts, arrays = explored
    key = key_for(request)
    later = {slug: {"value": None, "undefined": "still being computed"} for slug in measuring.slow_metrics()}
    soon = [{**entry, "readings": entry["readings"] | later} for entry in facts["entries"]]
    soon_told = {"reason": "it is still being measured"}
    early = {**facts, "output": soon_told, "entries": soon, "pending": measuring.pending()}
    early |= {"layers": None, "shrinkage": {"reason": "it is still being computed, from training tokens"}}
    results.STORE.publish(key, early, arrays)
    put_job(VIEW, key, "running", progress=Progress(700, 1000, "looking for neighbours (TwoNN), 3 of 9 clouds"))
    at = address(request, explore_tab="All numbers", explore_measure="Intrinsic dimension (TwoNN)")
    page = open_page("explore", **at)
    assert errors(page) == [] and len(drawn(page)) == 2
    assert "neighbours (TwoNN), 3 of 9 clouds" in page.get("progress")[0].proto.text.replace("\\", "")
    slow = [metrics.get(slug).title for slug in measuring.slow_metrics()]
    assert f"Still being computed: {', '.join(slow)}, output matrix, IsoScore*." in texts(page)
    assert "No IsoScore*: it is still being computed, from training tokens." in texts(page)
    assert "intrinsic dimension (TwoNN) is still being computed" in texts(page)
    assert page.button(key="explore_stop")
    queue.stop(VIEW, key)  # AppTest cannot press in a page whose model is a folder
    page = open_page("explore", **at)
    assert errors(page) == [] and len(drawn(page)) == 2 and not page.button(key="explore_look").disabled
    results.STORE.publish(key, facts, {})
    page = open_page("explore", **at)
    assert not page.get("progress") and "Still being computed" not in texts(page)
    assert page.button(key="explore_look").disabled


def test_vanished_and_failed_jobs_are_reported_with_advice(open_page: OpenPage, tmp_path: Path) -> None:
    request = ViewRequest("demo/tiny-bert", "demo/acceptability")
    log = tmp_path / "log"
    log.write_text("<b>the last words</b>")
    put_job(VIEW, key_for(request), "lost", message="it died", advice="Take fewer rows.", log=log)
    page = open_page("explore")
    assert errors(page) == ["It died. Take fewer rows."]
    assert page.button(key="explore_look").label == "Retry"
    assert page.code[0].value == "<b>the last words</b>"
    fail_job(VIEW, key_for(request), "max_rows: these clouds need 9 GiB (allowed: 4)", "max_rows", "Take fewer.")
    page = open_page("explore")
    assert errors(page) == ["These clouds need 9 GiB (allowed: 4). Take fewer."]
    assert not page.button(key="explore_look").disabled


def test_finished_view_is_shown_at_once_with_its_numbers(opened: Opened, kept_view: ViewResult) -> None:
    page = opened(explore_tab="Similarity of layers")
    assert errors(page) == [] and "Pick a model and a task, then press Analyse" not in texts(page)
    assert len(drawn(page)) == 3  # the map and the matrix are components
    markers = [chart["data"][0].get("marker", {}) for chart in drawn(page)]
    (compared,) = [marker["color"] for marker in markers if marker.get("symbol") == "square" and "cmin" in marker]
    clouds = [kept_view.points(layer, "cls") for layer in range(kept_view.depth + 1)]
    expected = similarity.matrix(clouds, clouds, "cka")  # before the first layer, all first tokens are one point
    assert np.isnan(expected).any() and np.isfinite(expected[1:, 1:]).all()
    np.testing.assert_allclose(compared, expected[~np.isnan(expected)], atol=1e-4)
    page = opened(explore_tab="All numbers")
    shown = page.dataframe[0].value
    assert len(shown) == 10 and list(shown.columns) == list(numbers.headings().values())
    entry = kept_view.entry(2, "cls")
    line = shown[(shown["Layer"] == 2) & (shown["Pooling"] == "cls")].iloc[0]
    assert (line["n"], line["d"]) == (ROWS, 16)
    assert line["IsoScore"] == entry.number("isoscore") and line["EV₁"] == entry.curve("ev")[0]
    assert "n = 24, d = 16" in texts(page)
    assert f"The first {ROWS} of 32 rows of validation" in texts(page)


def test_across_layers_shows_entropy_and_what_each_layer_keeps(opened: Opened, kept_view: ViewResult) -> None:
    page = opened(explore_tab="Across layers", explore_pooling="mean", explore_measure="Prompt entropy")
    assert errors(page) == []
    lines = {trace["name"]: trace["y"] for chart in drawn(page) for trace in chart["data"] if "name" in trace}
    clouds = [kept_view.points(layer, "mean") for layer in range(kept_view.depth + 1)]
    kept = layers.retention(clouds)
    assert kept is not None
    np.testing.assert_allclose(lines["kept from the layer before"], [value for value, _ in kept.from_before])
    entropies = [kept_view.entry(layer, "tokens").number("prompt_entropy") for layer in range(kept_view.depth + 1)]
    np.testing.assert_allclose(lines["tokens of a text"], entropies)
    assert f"share most neighbours with layer {kept.choice}" in texts(page)
    assert "is a measure of pooling tokens" in texts(page)
    page = opened(explore_tab="Across layers", explore_pooling="tokens")
    assert errors(page) == [] and "a pooling that every layer has" in texts(page)


def test_measure_layer_and_pooling_live_in_the_address(opened: Opened, kept_view: ViewResult) -> None:
    chosen = {"explore_measure": "Mean cosine", "explore_layer": "1", "explore_pooling": "mean"}
    page = opened(**chosen)
    assert errors(page) == []
    assert page.slider(key="explore_layer").value == 1
    profile = drawn(page)[0]
    assert profile["layout"]["yaxis"]["title"]["text"] == "Mean cosine"
    lines = {trace["name"]: trace["y"] for trace in profile["data"]}
    assert lines["first token [CLS]"] == [kept_view.entry(layer, "cls").number("mean_cosine") for layer in range(3)]
    assert "24 rows · layer 1, mean of the tokens" in texts(page)


def test_names_that_no_field_can_have(opened: Opened) -> None:
    """Streamlit accepts neither as a key, and raises where it needs one."""
    assert errors(opened(**{"": "x", "$$ID-x-none": "x"})) == []


def test_a_translation_is_read_in_the_direction_of_the_form(open_page: OpenPage, tmp_path: Path) -> None:
    data = str(write("seq2seq", tmp_path / "ro-en"))
    query = {"explore_task": "wmt16/ro-en", "explore_data.wmt16/ro-en": data}
    page = open_page("explore", **query)
    assert errors(page) == [] and page.segmented_control(key="explore_direction.wmt16/ro-en").value == "ro-en"
    page.segmented_control(key="explore_direction.wmt16/ro-en").set_value("en-ro").run()
    request = ViewRequest("demo/tiny-bert", "wmt16/ro-en", data, max_rows=500, direction="en-ro")
    fail_job(VIEW, key_for(request), "this very one")
    page.run()
    assert errors(page) == ["This very one."]
    page.segmented_control(key="explore_views").set_value(2).run()
    copied = (
        page.segmented_control(key="explore2_direction.wmt16/ro-en").value,
        page.text_input(key="explore2_data.wmt16/ro-en").value,
    )
    assert copied == ("en-ro", data)


def test_a_sentence_transformers_model_is_shown_with_the_vectors_it_gives(
    tiny_models: TinyModels, tmp_path: Path, open_page: OpenPage
) -> None:
    folder = make(tmp_path / "model", tiny_models("bert"), dense=8, normalize=True)
    request = ViewRequest(str(folder), "glue/cola", str(write("classification", tmp_path / "cola")), max_rows=12)
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    read = tasks.load(tasks.get("glue/cola"), request.data).validation["sentence"].tolist()[:12]
    vectors = encode(str(folder), read)
    assert [entry["layer"] for entry in facts["entries"] if entry["pooling"] == "sentence"] == [2]
    np.testing.assert_allclose(arrays["2.sentence.cloud"], vectors, atol=1e-3)  # stored in half precision
    typed = encoders.load(str(folder)).embed([read[:3]], 2, "sentence", 128)
    np.testing.assert_allclose(typed.points, vectors[:3], atol=1e-5)
    key = key_for(request)
    results.STORE.publish(key, facts, arrays)
    page = open_page("explore", **address(request), explore_layer="1")
    assert errors(page) == []
    assert "layer 2, sentence vector" in texts(page)  # whatever layer the address names
    assert "Transformer → Pooling (mean) → Dense → Normalize" in texts(page)


def test_isoscore_star_of_every_layer_and_of_all_together(opened: Opened, kept_view: ViewResult) -> None:
    chosen = {"explore_measure": "IsoScore*", "explore_layer": "1", "explore_pooling": "tokens"}
    chosen["explore_tab"] = "All numbers"
    page = opened(**chosen)
    assert errors(page) == []
    together = kept_view.together
    assert together is not None
    profile = drawn(page)[0]
    assert profile["layout"]["yaxis"]["title"]["text"] == "IsoScore*"
    lines = {trace["name"]: trace["y"] for trace in profile["data"]}
    assert lines["every token"] == [kept_view.entry(layer, "tokens").number("isoscore_star") for layer in range(3)]
    assert lines["first token [CLS]"] == [None] * 3
    assert [trace["showlegend"] for trace in profile["data"]] == [False, False, True]
    read = texts(page)
    value, n = wording.number(together.number("isoscore_star")), wording.number(together.n)
    assert f"Every token of layers 1 to 2 as one cloud (cloud layers): {value} (n = {n}, d = 16)" in read
    words = f"IsoScore*: {kept_view.facts['shrinkage']['words']}."
    assert words.startswith("IsoScore*: ζ = 0.2, Σ_S from ") and read.count(words) == 2  # here, and below all numbers
    assert "covariance of that layer's tokens in rows of the training split" in read
    shown = page.dataframe[0].value
    last = shown.iloc[-1]
    assert last["IsoScore*"] == together.number("isoscore_star") and last["n"] == together.n
    assert shown["Layer"].isna().sum() == 1 and "as one cloud" in read
    page = opened(explore_measure="IsoScore*")
    assert errors(page) == [] and "IsoScore* undefined (n = " in texts(page)
    assert "IsoScore* is undefined: Σ_S is of training tokens" in texts(page)


def test_the_page_is_saved_with_its_numbers_and_its_vectors(
    opened: Opened, kept_view: ViewResult, offered: Offered, tmp_path: Path
) -> None:
    page = opened(explore_layer="1", explore_pooling="mean")
    page_file = saved(next(make for name, make in offered.items() if re.match(r"isoviz-explore-.*\.html", name))())
    assert page_file.figures[0]["data"] == drawn(page)[0]["data"] and len(page_file.figures) > 2

    (matrix,) = page_file.matrices
    cells, order = kept_view.matrix(1, "mean")
    found = {name: base64.b64decode(matrix[name]) for name in ("matrix", "order", "sigma")}
    assert found["matrix"] == cells[np.tril_indices(len(cells), -1)].tobytes()
    assert np.frombuffer(found["order"], "<i4").tolist() == order.tolist()
    np.testing.assert_array_equal(np.frombuffer(found["sigma"], "<f4"), kept_view.array(1, "mean", "sigma"))

    entries, path = page.session_state["shown_on_this_page"].values(), tmp_path / "saved.html"
    for with_texts in (True, False):  # AppTest cannot press in a page whose model is a folder
        inside = vectors_inside(entries, texts=with_texts)
        path.write_text(render("Explore", "", entries, inside=inside, texts=with_texts), encoding="utf-8")
        again, table = vectors.read(path), kept_view.table("mean")
        np.testing.assert_array_equal(again.points, kept_view.points(1, "mean"))
        assert set(again.columns) == {*["label", "text"][: 1 + with_texts]}
        content = html.unescape(path.read_text("utf-8"))
        assert sum(text in content for text in table["sentence"]) == (len(table) if with_texts else 0)

    table = next(frame for title, frame in page_file.tables.items() if title.startswith("Every measure"))
    expected = [entry.number("isoscore") for entry in kept_view.entries]
    np.testing.assert_allclose(table["IsoScore"][: len(expected)], np.array(expected, dtype=float), rtol=6e-4)
    assert any("ViewRequest(" in code for code in page_file.codes.values())


def test_downloads_hold_every_number(kept_view: ViewResult) -> None:
    together, first = kept_view.together, kept_view.entries[0]
    assert together is not None and first.number("isoscore") is None  # [CLS] before any layer is one point
    table = numbers.frame([*kept_view.entries, together])
    lines = [line.split(",") for line in downloads.csv(table).decode("utf-8-sig").splitlines()]
    assert len(lines) == 11 and lines[0][:5] == ["layer", "pooling", "n", "d", "isoscore"]
    assert lines[1][4] == "" and float(lines[2][4]) == kept_view.entries[1].number("isoscore")
    assert [line[0] for line in lines][-2:] == ["2", ""]
    back = pd.read_csv(io.BytesIO(downloads.csv(table)))
    assert back["isoscore_star"].iloc[-1] == together.number("isoscore_star")
    assert back["isoscore_star"].notna().sum() == 4  # three layers of tokens, and these
    text = numbers.latex(table, "a_model on 100 % of it")
    assert r"a\_model on 100 \% of it" in text and text.count(r"\\") == 11 and "EV$_1$" in text
    (last,) = [line for line in text.splitlines() if line.startswith(" & tokens")]
    assert f"{together.number('isoscore_star'):.4g}" in last
