"""Choosing a model on Train and Explore, the hub being a small one on loopback; a model whose weights do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.inputs import model_form
from isoviz.exploring import measuring
from isoviz.exploring.request import ViewRequest
from isoviz.models import sources
from isoviz.models.published import PUBLISHED
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import ROWS, address, errors, keep, texts
from tests.hub_client import looking_at
from tests.loopback_hub import LoopbackHub, Repository, serving
from tests.tiny import TinyModels, without_a_weight

NAME = "acme/tiny"
FIELD = "train_models"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    with serving() as served, looking_at(served.endpoint, tmp_path / "cache", monkeypatch):
        yield served


@pytest.fixture
def published(hub: LoopbackHub, tiny_models: TinyModels) -> str:
    """One BERT is on the hub; its commit."""
    return hub.add(NAME, tiny_models("bert"))


def at(page: AppTest, place: str, field: str = FIELD) -> AppTest:
    return page.segmented_control(key=f"{field}.where").set_value(place).run()


def test_cached_models_are_offered(open_page: OpenPage, published: str) -> None:
    size = sources.fetch(sources.resolve(NAME)).size
    model_form.forget()
    page = open_page("train", **{FIELD: NAME})
    assert NAME in page.multiselect(key=FIELD).options and page.multiselect(key=FIELD).value == [NAME]
    assert f"in this machine's hub cache, {size / 1000:.1f} kB, commit {published[:10]}" in texts(page)


def _button(page: AppTest, label: str) -> int:
    return next(number for number, button in enumerate(page.button) if button.label == label)


def test_search_finds_and_takes_a_revision(
    open_page: OpenPage, hub: LoopbackHub, published: str, tiny_models: TinyModels
) -> None:
    hub.add("acme/tiny-gated", tiny_models("bert"), gated=True)
    hub.repositories["models/acme/tiny-pickle"] = Repository(
        "models", {"0" * 40: {"config.json": b'{"model_type": "bert"}'}}, {"main": "0" * 40}
    )
    other = hub.add(NAME, tiny_models("roberta"), branch="v2")
    page = at(open_page("train"), model_form.HUB)
    before = len(hub.asked)
    page.text_input(key=f"{FIELD}.search").set_value("tiny")
    page.text_input(key=f"{FIELD}.revision").set_value("v2")
    assert not any("search" in line or line == "GET /api/models" for line in hub.asked[before:])
    page.button[_button(page, "Search")].click().run()
    assert errors(page) == []
    free, gated = page.selectbox(key=f"{FIELD}.found").options
    assert free == f"{NAME} · bert · 0.0 M parameters · 7 downloads"
    assert gated.startswith("acme/tiny-gated") and gated.endswith("gated: accept its terms on the hub first")
    assert "acme/tiny-pickle has no safetensors" in texts(page)
    page.selectbox(key=f"{FIELD}.found").set_value(NAME).run()
    assert page.multiselect(key=FIELD).value == ["demo/tiny-bert", f"{NAME}@v2"]
    assert f"to download, commit {other[:10]}" in texts(page)
    page.text_input(key=f"{FIELD}.search").set_value("no such thing")
    page.button[_button(page, "Search")].click().run()
    assert "No hub model has a name that contains 'no such thing'" in texts(page)


def test_offline_is_reported_and_checked_again(
    open_page: OpenPage, hub: LoopbackHub, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as unplugged:
        unplugged.setattr("isoviz.hub._unreachable", lambda endpoint: "the hub cannot be reached (no cable)")
        page = at(open_page("train", train_max_length="48"), model_form.HUB)
        assert "The hub cannot be reached (no cable)" in page.info[0].value.replace("\\", "")
        assert "work without it" in texts(page)
        page.multiselect(key=FIELD).set_value([NAME]).run()
        (error,) = errors(page)
        assert "is not on this machine and the hub cannot be reached" in error
        assert page.button(key="launch").disabled
    page.run()
    assert errors(page)  # detected once
    page.button(key=f"{FIELD}.again").click().run()
    assert errors(page) == [] and not page.info
    assert "to download" in texts(page) and not page.button(key="launch").disabled


def test_the_papers_models_are_offered(open_page: OpenPage) -> None:
    page = at(open_page("train"), model_form.PAPERS)
    offered = page.selectbox(key=f"{FIELD}.models")
    assert len(offered.options) == len(PUBLISHED)
    chosen = next(model for model in PUBLISHED if "IsoBN" in model.papers)
    offered.set_value(chosen.name).run()
    assert chosen.name in page.multiselect(key=FIELD).value
    assert any(chosen.name in text for text in errors(page))  # no machine of the tests reaches the hub


LACKS = "1 encoder weight is missing from the checkpoint"


@pytest.fixture(scope="module")
def holed(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of whose second layer a weight is gone."""
    return without_a_weight(tiny_models("bert"), tmp_path_factory.mktemp("models") / "holed")


def test_train(open_page: OpenPage, store: Store, holed: Path) -> None:
    page = open_page("train", train_models=str(holed), train_max_length="48")
    assert len(errors(page)) == 1 and LACKS in errors(page)[0] and "Use random weights" in texts(page)
    assert page.button(key="launch").disabled
    page.toggle(key="train_allow_random").set_value(True).run()
    assert errors(page) == [] and f"random weights: {LACKS}" in texts(page)
    assert "--allow-random" in page.code[0].value
    page.button(key="launch").click().run()
    assert {item.config.allow_random for item in store.list()} == {True}


def test_explore(open_page: OpenPage, holed: Path, cola: Path) -> None:
    request = ViewRequest(str(holed), "glue/cola", str(cola), max_rows=ROWS, allow_random=True)
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    assert all(entry["notes"][0].startswith("random weights: ") for entry in facts["entries"])
    keep((request, facts, arrays))
    page = open_page("explore", **address(request))
    assert any(LACKS in error for error in errors(page))
    assert f"random weights: {LACKS}" not in texts(page)
    page = open_page("explore", **address(request), explore_allow_random="true")
    assert errors(page) == []
    assert f"random weights: {LACKS}" in texts(page)
    figures = [element.proto.json for element in page.get("bidi_component") if f"{holed}" in element.proto.json]
    assert figures and all(
        f"{holed} \\u00b7 random weights" in figure or f"{holed} · random" in figure for figure in figures
    )
