"""Pages detect a model whose weights do not fit; if random weights are allowed, every number says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from dashboard.whatif.form import run_title
from isoviz.exploring import measuring
from isoviz.exploring.request import ViewRequest
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, result, row
from tests.dashboard.reading import ROWS, address, errors, keep, texts
from tests.tiny import TinyModels

LACKS = "1 encoder weight is missing from the checkpoint"


@pytest.fixture(scope="module")
def holed(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of whose second layer a weight is gone."""
    folder = tmp_path_factory.mktemp("models") / "holed"
    shutil.copytree(tiny_models("bert"), folder)
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


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


def test_whatif_names_such_a_run() -> None:
    ended = result(0.5, 0.25).model_copy(update={"random_weights": LACKS})
    assert " · random weights · " in run_title(row("r", config(), outcome=ended))
    assert "random" not in run_title(row("r", config(), outcome=result(0.5, 0.25)))
