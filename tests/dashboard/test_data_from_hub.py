"""Rows from the hub on the Train page, the hub being a small one on loopback: not there, gated, found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
import streamlit as st

from isoviz import tasks
from tests.dashboard.conftest import OpenPage
from tests.hub_client import looking_at
from tests.loopback_hub import LoopbackHub, serving
from tests.tasks.test_hub import README


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    st.cache_data.clear()
    datasets.disable_progress_bars()
    with serving() as served, looking_at(served.endpoint, tmp_path / "cache", monkeypatch):
        yield served
    datasets.enable_progress_bars()
    st.cache_data.clear()


@pytest.fixture
def repository(cola: Path, tmp_path: Path) -> Path:
    """A folder that the hub serves: GLUE with CoLA alone."""
    folder = tmp_path / "glue" / "cola"
    folder.mkdir(parents=True)
    (folder.parent / "README.md").write_bytes(README)
    for split in ("train", "validation"):
        (folder / f"{split}-00000-of-00001.parquet").write_bytes((cola / f"{split}.parquet").read_bytes())
    return folder.parent


def test_each_reply_of_the_hub_is_reported_and_a_good_one_shown(
    open_page: OpenPage, hub: LoopbackHub, repository: Path
) -> None:
    name, _ = tasks.get("glue/cola").hub or ("", "")
    page = open_page("train", train_tasks="glue/cola", **{"train_from.glue/cola": "Hugging Face hub"})
    assert not page.exception and not page.error
    page.button(key="train_hub_glue/cola").click().run()
    assert "is not on the hub" in page.error[0].value.replace("\\", "") and page.button(key="launch").disabled
    hub.add(name, repository, kind="datasets", gated=True)
    page.button(key="train_hub_glue/cola").click().run()
    assert "is gated: accept its terms" in page.error[0].value.replace("\\", "")
    hub.repositories[f"datasets/{name}"].gated = False
    page.button(key="train_hub_glue/cola").click().run()
    assert not page.exception and not page.error
    assert any("64 rows" in text.value for text in page.markdown)
