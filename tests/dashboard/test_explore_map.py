"""The map on the page: settings and selection in the address, own sentences, several views, and the same in Python."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.explore import sections
from isoviz.exploring import maps, measuring, similarity
from isoviz.exploring.maps import MapRequest
from isoviz.exploring.request import ViewRequest
from isoviz.exploring.results import ViewResult
from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind, Progress
from isoviz.jobs.queue import JobState
from isoviz.models import sources
from isoviz.operations.access.service import Service
from tests.dashboard.conftest import ROOT, Opened
from tests.dashboard.reading import components, drawn, errors, texts
from tests.jobs.here import work_here
from tests.tiny import embed

ROWS = 24


@pytest.fixture(autouse=True)
def _fresh_cache() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def explored() -> tuple[ViewRequest, dict, dict]:  # type: ignore[type-arg]
    """A small view, really computed: its request, facts and arrays."""
    request = ViewRequest("demo/tiny-bert", "demo/acceptability", max_rows=ROWS)
    return request, *measuring.compute(request, lambda done, total, text: None)


@pytest.fixture
def view(kept_view: ViewResult) -> ViewResult:
    return kept_view


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Jobs run immediately in this process, with PCA in place of UMAP."""
    requests: list[str] = []

    class Fitted:
        def __init__(self, points: Any, request: MapRequest) -> None:
            self._map = maps.pca(points, request.dimensions)
            self.embedding_ = self._map.coordinates

        def transform(self, points: Any) -> Any:
            return self._map.place(points)

    def start(_: Service, kind: JobKind, key: str, request: Any, inputs: Any = None, retry: bool = True) -> JobState:
        requests.append(kind.name)
        return work_here(kind, key, request, inputs)

    monkeypatch.setattr(maps, "fit_umap", lambda points, request, tell=None: Fitted(points, request))
    monkeypatch.setattr(Service, "start_job", start)
    yield requests


def figures(page: AppTest) -> list[dict[str, Any]]:
    """The data of a page's maps."""
    return [data for data in components(page) if "figure" in data]


def matrices(page: AppTest) -> list[dict[str, Any]]:
    """The data of a page's correlation matrices."""
    return [data for data in components(page) if "arrays" in data]


def numbers(trace: dict[str, Any], axis: str) -> np.ndarray:  # type: ignore[type-arg]
    import base64

    packed = trace[axis]
    return np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])


def line_around(page: AppTest, corners: list[tuple[float, float]]) -> str:
    """The value of the address for a line around points of the page's first map."""
    return f"{figures(page)[0]['revision']}:{maps.line_text(maps.shortened_line(corners))}"


def test_a_folded_section_computes_nothing_and_keeps_its_fields(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = opened(explore_tab="Means, spreads and cosines", explore_ev_axis="log axis")
    every = len(drawn(page))
    with monkeypatch.context() as folded:
        folded.setattr(sections, "cloud_figures", None)
        folded.setattr(similarity, "matrix", None)
        st.cache_data.clear()
        del page.query_params["explore_tab"]
        page.session_state["explore_tab"] = "Rogue dimensions"
        assert errors(page.run()) == [] and len(drawn(page)) == every - 3
        assert "explore_tab" not in page.query_params


def test_every_point_is_drawn_where_pca_puts_it_and_pictures_name_their_cloud(opened: Opened, view: ViewResult) -> None:
    page = opened(explore_layer="1", explore_pooling="mean", explore_tab="Means, spreads and cosines")
    assert errors(page) == []
    (data,) = figures(page)
    figure = json.loads(data["figure"])
    x = np.concatenate([numbers(trace, "x") for trace in figure["data"]])
    expected = maps.pca(view.points(1, "mean"))
    np.testing.assert_allclose(np.sort(x), np.sort(expected.coordinates[:, 0]), rtol=1e-5)
    assert {trace["name"] for trace in figure["data"]} == {"acceptable", "unacceptable"}
    assert f"PC 1 ({100 * expected.shares[0]:.1f} % of the variance)" == figure["layout"]["xaxis"]["title"]["text"]
    assert "Layer 1, mean; 24 points, d = 128" in texts(page)
    source = "demo/tiny-bert · demo/acceptability · validation · "
    about = {data["name"].split("-validation-")[-1]: data["about"] for data in components(page) if "about" in data}
    assert len(about) == 7
    assert about.pop("pca-layer1-mean") == source + "layer 1, mean, 24 points, d = 128"
    of_tokens = view.entry(1, "tokens").n
    assert about.pop("profile-layer1-mean") == (
        f"{source}layers 0 to 4 · cls: n = 24; mean: n = 24; tokens: n = {of_tokens} · d = 128"
    )
    assert set(about.values()) == {source + "layer 1, mean, n = 24, d = 128"}


def test_line_in_the_address_selects_and_a_point_has_its_neighbours(opened: Opened, view: ViewResult) -> None:
    page = opened()
    coordinates = maps.pca(view.points(4, "cls")).coordinates
    middle = float(np.median(coordinates[:, 0]))
    right = [(middle, -99.0), (99.0, -99.0), (99.0, 99.0), (middle, 99.0)]
    inside = np.flatnonzero(maps.inside(coordinates, maps.shortened_line(right)))
    assert 0 < len(inside) < ROWS
    point = int(inside[0])
    again = opened(explore_lasso=line_around(page, right), explore_point=str(point))
    assert errors(again) == [] and f"{len(inside)} of 24 points selected" in texts(again)
    table, near = again.dataframe[0].value, again.dataframe[1].value
    assert table["row"].tolist() == inside.tolist() and {"sentence", "label", "length"} <= set(table.columns)
    cloud = view.points(4, "cls").astype(float)
    cosines = cloud @ cloud[point] / np.linalg.norm(cloud, axis=1) / np.linalg.norm(cloud[point])
    cosines[point] = -2
    assert near["row"].tolist() == np.argsort(-cosines, kind="stable")[:10].tolist()
    np.testing.assert_allclose(near["cosine"], np.sort(cosines)[::-1][:10], atol=1e-9)
    assert figures(again)[0]["selection"]


def test_own_sentences_are_placed_with_their_neighbours(
    opened: Opened, view: ViewResult, explored: Any, answered: list[str]
) -> None:
    lines = ["the dog sleeps", "the cats sleep"]
    page = opened(explore_own="\n".join(lines))
    assert errors(page) == [] and "sentences" in answered
    own = json.loads(figures(page)[0]["figure"])["data"][-1]
    points = embed(sources.resolve(explored[0].model), [lines], layer=4)
    expected = maps.pca(view.points(4, "cls")).place(points)
    np.testing.assert_allclose(numbers(own, "x"), expected[:, 0], atol=1e-3)
    assert own["name"] == "own sentences"
    table = page.dataframe[0].value
    assert (
        len(table) == 6
        and table["yours"].iloc[0] == "1. the dog sleeps"
        and table["yours"].iloc[3] == "2. the cats sleep"
    )

    long = opened(explore_own="word " * 2_000)
    assert errors(long) == [] and "Only the first 2,000 of 10,000 characters are used." in texts(long)
    assert len(long.dataframe[0].value["yours"].iloc[0]) < 2_010

    tokens = opened(explore_own="the dog", explore_pooling="tokens")
    assert errors(tokens) == [] and "1. [CLS] · the dog" in tokens.dataframe[0].value["yours"].tolist()


def test_umap_comes_from_the_desk_and_places_own_sentences(opened: Opened, answered: list[str]) -> None:
    page = opened(explore_map="UMAP", explore_size="3-D", explore_own="w1")
    assert errors(page) == [] and answered.count("map") >= 2
    figure = json.loads(figures(page)[0]["figure"])
    assert figure["layout"]["scene"]["xaxis"]["title"]["text"] == "UMAP 1" and figures(page)[0]["solid"]
    assert figure["data"][-1]["name"] == "own sentences"


def test_running_and_failed_jobs_are_shown(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [JobState("running", "x", progress=Progress(30, 100, "laying out the map, step 60 of 200"))]
    monkeypatch.setattr(Service, "start_job", lambda _, *asked, retry: replies[-1])
    page = opened(explore_map="UMAP")
    (bar,) = page.get("progress")
    assert errors(page) == [] and bar.proto.value == 30 and "step 60 of 200" in bar.proto.text
    dropped: list[str] = []
    monkeypatch.setattr(queue, "release", lambda kind, key: dropped.append(key))
    page.button(key="explore_map_stop").click().run()
    assert errors(page) == [] and page.segmented_control(key="explore_map").value == "PCA" and dropped == ["x"]
    page.segmented_control(key="explore_map").set_value("UMAP").run()
    replies.append(JobState("failed", "x", message="points: UMAP needs at least 5 (got 2)", field="points"))
    retried: list[str] = []
    monkeypatch.setattr(queue, "retry", lambda kind, key: retried.append(key))
    page.run()
    assert "UMAP needs at least 5" in errors(page)[0]
    page.button(key="explore_map_again").click().run()
    assert retried == ["x"]


def test_one_button_stops_the_umaps_of_all_views_and_unneeded_jobs_end(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: dict[str, Any] = {}

    def start(_: Service, kind: JobKind, key: str, request: Any, inputs: Any = None, retry: bool = True) -> JobState:
        under_way[key] = request
        return JobState("running" if len(under_way) == 1 else "waiting", key)

    monkeypatch.setattr(Service, "start_job", start)
    monkeypatch.setattr(queue, "release", lambda kind, key: under_way.pop(key))
    second = {"explore2_layer": "1", "explore2_rows": str(ROWS)}
    page = opened(explore_views="2", **second, explore_map="UMAP")
    assert errors(page) == [] and sorted(question["layer"] for question in under_way.values()) == [1, 4]
    page.number_input(key="explore_neighbours").set_value(20).run()
    assert [question["map"]["neighbours"] for question in under_way.values()] == [
        20,
        20,
    ]  # not the previous ones as well
    (stop,) = [button for button in page.button if "Stop" in button.label]
    assert stop.label == "Stop all"
    stop.click().run()
    assert errors(page) == [] and under_way == {} and page.segmented_control(key="explore_map").value == "PCA"

    page.segmented_control(key="explore_map").set_value("UMAP").run()
    page.switch_page(str(ROOT / "pages" / "results.py")).run()
    page.switch_page(str(ROOT / "pages" / "explore.py")).run()  # whose address says nothing of UMAP now
    assert errors(page) == [] and len(under_way) == 2  # what is left on its way goes on


def test_views_side_by_side_on_the_same_axes(opened: Opened, view: ViewResult) -> None:
    second = {"explore2_layer": "1", "explore2_pooling": "mean", "explore2_rows": str(ROWS)}
    page = opened(explore_views="2", explore_tab="Means, spreads and cosines", **second)
    charts = drawn(page)
    assert errors(page) == [] and len(charts) == 10 and len(figures(page)) == 2
    assert "Different depths or poolings: view 1: layer 4, cls; view 2: layer 1, mean." in texts(page)
    for left, right in zip(charts[0:10:2], charts[1:10:2], strict=True):
        assert left["layout"]["yaxis"]["range"] == right["layout"]["yaxis"]["range"]
    first, other = (json.loads(data["figure"])["layout"] for data in figures(page))
    assert first["xaxis"]["range"] == other["xaxis"]["range"]
    key = view.folder.name
    clouds = [f"isoviz/views/{key}/4/cls", f"isoviz/views/{key}/1/mean"]
    assert [data["arrays"] for data in matrices(page)] == clouds
    forms_named = [place.value for place in page.markdown if place.value in ("**View 1**", "**View 2**")]
    assert forms_named[:2] == ["**View 1**", "**View 2**"]
    page = opened(explore_views="2", explore_tab="All numbers", **second)
    assert errors(page) == [] and len(page.dataframe) == 1  # both views are of the same thing
    page = opened(explore_views="2", explore_tab="Output matrix", **second)
    assert texts(page).count("| as defined |") == 1
    assert "**Views 1, 2**: demo/tiny-bert" in texts(page)  # one output matrix: it is the model's
    assert "N = 5,600 rows of d = 128 numbers" in texts(page)


def test_layer_and_pooling_of_another_model_are_not_kept(opened: Opened) -> None:
    page = opened(explore_layer="1", explore_pooling="mean")
    assert page.slider(key="explore_layer").value == 1
    page.session_state["explore_of_model"] = "another"
    page.run()
    assert errors(page) == [] and page.slider(key="explore_layer").value == 4
    assert page.segmented_control(key="explore_pooling").value == "cls"


def test_the_same_in_python(opened: Opened, view: ViewResult) -> None:
    chosen = {"explore_layer": "1", "explore_pooling": "mean", "explore_points": "1000"}
    page = opened(**chosen)
    assert not page.code  # its colours are not loaded before it is shown
    page.session_state["explore_python"] = True
    (code,) = [block.value for block in page.run().code if "ViewRequest" in block.value]
    output, names = io.StringIO(), {}  # type: ignore[var-annotated]
    with redirect_stdout(output):
        exec(code, names)
    assert output.getvalue().split()[0] == repr(view.entry(1, "mean").number("isoscore"))
    figure = json.loads(figures(page)[0]["figure"])
    x = np.concatenate([numbers(trace, "x") for trace in figure["data"]])
    np.testing.assert_allclose(np.sort(names["coordinates"][:, 0]), np.sort(x), rtol=1e-5)
