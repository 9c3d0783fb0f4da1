"""Choosing a model on Train and Explore, the hub being a small one on loopback; a model whose weights do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.inputs import model_form
from isoviz.exploring import measuring
from isoviz.exploring.request import ViewRequest
from isoviz.models import sources
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import ROWS, address, errors, keep, texts
from tests.hub_client import looking_at
from tests.loopback_hub import LoopbackHub, serving
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


def test_cached_models_are_offered(open_page: OpenPage, published: str) -> None:
    size = sources.fetch(sources.resolve(NAME)).size
    model_form.forget()
    page = open_page("train", train_max_length="48")
    assert NAME in page.multiselect(key=FIELD).options
    page.multiselect(key=FIELD).set_value(["demo/tiny-bert", NAME]).run()
    assert errors(page) == []
    assert page.multiselect(key=FIELD).value == ["demo/tiny-bert", NAME]
    assert f"in this machine's hub cache, {size / 1000:.1f} kB, commit {published[:10]}" in texts(page)
    again = open_page("train", **{FIELD: NAME})
    assert again.multiselect(key=FIELD).value == [NAME]


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
    request = ViewRequest(str(holed), "glue/cola", str(cola), max_rows=ROWS, allow_random=True, dtype="bfloat16")
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    assert all(entry["notes"][0].startswith("random weights: ") for entry in facts["entries"])
    keep((request, facts, arrays))
    page = open_page("explore", **address(request))
    assert any(LACKS in error for error in errors(page))
    assert f"random weights: {LACKS}" not in texts(page)
    page = open_page("explore", **address(request), explore_allow_random="true", explore_dtype="bfloat16")
    assert errors(page) == []
    assert f"random weights: {LACKS}" in texts(page)
    figures = [element.proto.json for element in page.get("bidi_component") if f"{holed}" in element.proto.json]
    assert figures and all(
        f"{holed} \\u00b7 random weights" in figure or f"{holed} · random" in figure for figure in figures
    )
