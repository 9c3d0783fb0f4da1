"""Explore on a person's own vectors and texts, by their keys in the address; the form that loads them."""

from __future__ import annotations

import importlib
import io
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.inputs import model_form
from isoviz import vectors
from isoviz.exploring import measuring, results, user_sets, vector_view
from isoviz.exploring.request import Rows, ViewRequest, key_of
from isoviz.jobs.queue import JobState
from isoviz.models import extract, sources
from isoviz.operations.access.service import Service
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import drawn, errors, texts
from tests.models import sentence_folders
from tests.tiny import TinyModels

POINTS = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32)
LABELS = ["red", "blue", "green"] * 20


def _csv(points: np.ndarray = POINTS) -> bytes:
    frame = pd.DataFrame({"id": [f"t{row}" for row in range(len(points))], "label": LABELS[: len(points)]})
    for index in range(points.shape[1]):
        frame[f"x{index}"] = points[:, index]
    buffer = io.StringIO()
    frame.to_csv(buffer, index=False)
    return buffer.getvalue().encode()


def _stored_set(points: np.ndarray = POINTS, **columns: list[str]) -> str:
    return vectors.keep(vectors.from_points(points, pd.DataFrame(columns) if columns else None, name="mine.npy"))


@pytest.fixture
def computed_here(monkeypatch: pytest.MonkeyPatch) -> list[ViewRequest]:
    """Views that pages requested; they are computed immediately, in this process."""
    requests: list[ViewRequest] = []

    def start(_: Service, request: ViewRequest, key: str) -> JobState:
        requests.append(request)
        compute = vector_view.compute if request.task == user_sets.VECTORS else measuring.compute
        results.STORE.publish(key, *compute(request, lambda *_: None, None))
        return JobState("done", key)

    monkeypatch.setattr(Service, "start_view", start)
    return requests


def _upload(page: AppTest, name: str, content: bytes) -> AppTest:
    page.file_uploader(key="explore_own.vectors.file").set_value([(name, content, "text/csv")])
    return page.run()


def test_own_vectors_are_measured_and_drawn_without_a_button(
    open_page: OpenPage, computed_here: list[ViewRequest]
) -> None:
    key = _stored_set(id=[f"t{row}" for row in range(60)], label=LABELS)
    page = open_page("explore", explore_at="My vectors", explore_vectors=key).run()
    assert errors(page) == [] and [request.data for request in computed_here] == [key]
    assert "mine.npy: 60 vectors of 8 dimensions, with id, label" in texts(page)
    assert page.selectbox(key="explore_colour").value == "label"
    (score,) = re.findall(r"^IsoScore (\S+) \(n = 60, d = 8", texts(page), re.MULTILINE)
    assert float(score) == pytest.approx(results_of(key)["isoscore"], abs=1e-4)
    assert "bar" in {trace["type"] for trace in drawn(page)[0]["data"]}, "no layers: the mean of each dimension"
    assert not [area for area in page.text_area if area.key == "explore_own"], "no encoder, no sentences to place"
    assert drawn(page)


def results_of(key: str) -> dict[str, float]:
    request = ViewRequest("", user_sets.VECTORS, key, user_sets.ALL_ROWS)
    view = results.find(key_of(request, None, Rows(key, {user_sets.ALL_ROWS: 60})))
    assert view is not None
    return {
        slug: float(reading.value)
        for slug, reading in view.entries[0].readings.items()
        if isinstance(reading.value, float)
    }


def test_an_upload_is_kept_and_named_in_the_address(open_page: OpenPage, computed_here: list[ViewRequest]) -> None:
    page = _upload(open_page("explore", explore_at="My vectors"), "mine.csv", _csv())
    assert errors(page) == []
    key = str(page.query_params["explore_vectors"])
    np.testing.assert_allclose(vectors.load(key).points, POINTS, rtol=1e-6)
    assert [request.data for request in computed_here] == [key]
    page.button(key="explore_own.vectors.delete").click().run()
    assert "explore_vectors" not in page.query_params
    with pytest.raises(KeyError):
        vectors.load(key)


def test_copies_and_constant_dimensions_are_left_out_by_a_button(
    open_page: OpenPage, computed_here: list[ViewRequest]
) -> None:
    points = POINTS.copy()
    points[:, 3], points[40:45] = 1.0, points[:5]
    page = _upload(open_page("explore", explore_at="My vectors").run(), "odd.csv", _csv(points))
    assert "5 of 60 rows repeat an earlier one (the first is row 41)" in texts(page)
    for name in ("copies", "constant"):
        page.button(key=f"explore_own.vectors.page.{name}").click().run()
    kept = vectors.load(str(page.query_params["explore_vectors"]))
    assert errors(page) == [] and (kept.n, kept.d, kept.name) == (55, 7, "odd.csv")
    assert "dimensions that are constant are left out (3)" in texts(page) and "repeat an earlier" not in texts(page)


def test_a_search_is_three_files(open_page: OpenPage, computed_here: list[ViewRequest]) -> None:
    page = open_page("explore", explore_at="My vectors")
    links = "query,document,relevance\n" + "\n".join(f"q{row},t{row},1" for row in range(30))
    asked = _csv(POINTS[:30] + 1).replace(b"\nt", b"\nq")
    page.file_uploader(key="explore_own.vectors.questions").set_value([("questions.csv", asked, "text/csv")])
    page = _upload(page, "documents.csv", _csv())
    assert errors(page) == [] and "Add which documents are relevant to these questions" in texts(page)
    page.file_uploader(key="explore_own.vectors.relations").set_value([("links.csv", links.encode(), "text/csv")])
    page.run()
    assert errors(page) == []
    found = vectors.load(str(page.query_params["explore_vectors"]))
    assert (found.relation, found.n, len(found.pairs)) == ("relevance", 90, 30)


def test_columns_are_chosen_from_a_list_also_after_an_error(open_page: OpenPage) -> None:
    words = pd.DataFrame(
        {"nr": range(30), "titel": "t", "absatz": [f"about {n}" for n in range(30)], "fach": ["a", "b"] * 15}
    )
    links = pd.DataFrame({"frage": range(10), "treffer": range(10)})
    asked = pd.DataFrame({"nr": range(10), "wortlaut": [f"what is {n}" for n in range(10)], "fach": ["a", "b"] * 5})

    def put(role: str, frame: pd.DataFrame) -> None:
        file = (f"{role}.csv", frame.to_csv(index=False).encode(), "text/csv")
        page.file_uploader(key=f"compare_own.texts.{role}").set_value(file).run()

    def choose(**columns: str) -> None:
        for name, column in columns.items():
            field = page.selectbox(key=f"compare_own.texts.{name.replace('_', '.')}")
            assert column in field.options
            field.set_value(column).run()

    page = open_page("compare", compare_from="Your texts")
    page.session_state["compare_own.texts.more"] = True
    put("file", words)
    assert len(errors(page)) == 1 and "the column of the texts" in errors(page)[0]
    choose(file_text="absatz", file_id="nr", file_label="fach")
    assert errors(page) == [] and "titel. One could be the text, the label" in texts(page)
    put("relations", links)
    put("questions", asked)
    choose(questions_text="wortlaut", questions_id="nr", relations_query="frage", relations_document="treffer")
    assert errors(page) == []
    found = vectors.load_any(str(page.query_params["compare_texts"]))
    assert (found.n, len(found.pairs)) == (40, 10) and found.columns["label"].tolist() == ["a", "b"] * 20


def test_a_link_to_vectors_that_are_gone_says_so(open_page: OpenPage) -> None:
    page = open_page("explore", explore_at="My vectors", explore_vectors="0" * 32)
    (message,) = errors(page)
    assert "no longer on this server" in message


def test_prompt_and_dimensions_of_a_sentence_model(
    open_page: OpenPage,
    computed_here: list[ViewRequest],
    tmp_path: Path,
    tiny_models: TinyModels,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = sentence_folders.make(
        tmp_path / "model", tiny_models("bert"), prompts={"query": "w5 w6 ", "plain": ""}, default_prompt="query"
    )
    monkeypatch.setattr(model_form, "options", lambda: ["demo/tiny-bert", str(model)])
    key = vectors.keep(vectors.from_texts(sentence_folders.TEXTS))
    query = {"explore_at": "My texts", "explore_texts": key, "explore_model": str(model)}
    page = open_page("explore", **query, explore_prompt="plain", explore_truncate="5")
    assert errors(page) == [] and set(page.selectbox(key="explore_prompt").options) >= {"query", "plain"}
    page.button(key="explore_look").click().run()
    assert errors(page) == [] and "prompt plain" in texts(page)
    (request,) = computed_here
    assert (request.prompt, request.truncate) == ("plain", 5)
    view = results.find(key_of(request, sources.resolve(str(model)), Rows(key, {user_sets.ALL_ROWS: 14})))
    assert view is not None
    expected = extract.encode(str(model), sentence_folders.TEXTS, prompt="plain", truncate=5)
    np.testing.assert_allclose(view.points(view.depth, "sentence"), expected, atol=2e-3)

    # the model's own default needs no word in the request
    page.selectbox(key="explore_prompt").set_value("query").run()
    page.button(key="explore_look").click().run()
    assert computed_here[-1].prompt is None
    page.selectbox(key="explore_model").set_value("demo/tiny-bert").run()  # a bare transformer has neither
    assert not [
        field for field in (*page.selectbox, *page.number_input) if field.label in ("Prompt", "Dimensions kept")
    ]


def test_a_database_whose_password_the_page_forgets(
    open_page: OpenPage, computed_here: list[ViewRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb") if not os.environ.get("CI") else importlib.import_module("duckdb")
    with duckdb.connect(str(tmp_path / "v.duckdb")) as made:
        made.execute("CREATE TABLE docs AS SELECT i AS id, [random(), i, i * i]::FLOAT[] AS v FROM range(90) t(i)")
    monkeypatch.setenv("ISOVIZ_STORE_HOSTS", "127.0.0.1:9")  # nobody listens there
    page = open_page("explore", explore_at="My vectors", **{"explore_own.vectors.from": "Path or database"})
    field = page.text_input(key="explore_own.vectors.path")
    field.set_value("postgresql://wilhelmine:geheim@127.0.0.1:9/db").run()
    (message,) = errors(page)
    assert "postgresql://127.0.0.1:9/db cannot be read" in message
    assert page.text_input(key="explore_own.vectors.path").value == "postgresql://…@127.0.0.1:9/db"
    assert "geheim" not in texts(page) + message and "wilhelmine" not in texts(page) + message
    field.set_value("postgresql://wilhelmine:geheim@127.0.0.1/db").run()
    assert "ISOVIZ_STORE_HOSTS" in errors(page)[0], "another port"
    field.set_value(f"duckdb://{tmp_path}/v.duckdb?sample=50").run()
    assert errors(page) == []
    assert "50 of 90 rows at random (seed 0): 50 vectors of 3 dimensions" in texts(page)


def test_a_set_loaded_on_one_page_is_there_on_the_other(open_page: OpenPage, computed_here: list[ViewRequest]) -> None:
    key = _stored_set(label=LABELS)
    page = open_page("explore", explore_at="My vectors", explore_vectors=key)
    assert errors(page) == [] and computed_here
    del page.query_params["explore_vectors"]  # as after a click on another page and back
    page.run()
    assert errors(page) == [] and str(page.query_params["explore_vectors"]) == key
    page.button(key="explore_own.vectors.delete").click().run()
    assert "explore_vectors" not in page.query_params


def test_the_card_on_rogue_dimensions(open_page: OpenPage, computed_here: list[ViewRequest]) -> None:
    generator = np.random.default_rng(2)
    codes = np.arange(120) % 2
    points = generator.normal(size=(120, 32)).astype(np.float32)
    points[:, :6] += 2.0 * codes[:, None] - 1.0
    points[:, 20:22] *= 40.0
    key = _stored_set(points, label=["red", "blue"] * 60)
    page = open_page("explore", explore_at="My vectors", explore_vectors=key).run()
    assert errors(page) == []
    (table,) = [element.value for element in page.markdown if element.value.startswith("| Dim.")]
    assert sorted(line[:5] for line in table.splitlines()[2:]) == ["| 20 ", "| 21 "]
    assert "of the 10 nearest neighbours stay" in texts(page)
