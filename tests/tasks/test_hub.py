"""Data sets through the real libraries from a small hub on loopback: found, not found, gated, in the wrong shape, offline."""

from __future__ import annotations

from dataclasses import replace

import datasets
import pandas as pd
import pytest

from isoviz import tasks
from isoviz.errors import DataError
from isoviz.tasks import files
from isoviz.tasks.protocol import SPLITS
from tests.hub_client import looking_at
from tests.loopback_hub import serving

README = b"""---
configs:
- config_name: cola
  data_files:
  - split: train
    path: cola/train-*
  - split: validation
    path: cola/validation-*
---
"""
COLUMNS = ("sentence", "label")


@pytest.fixture
def server(tmp_path, monkeypatch):
    datasets.disable_progress_bars()
    with serving() as served, looking_at(served.endpoint, tmp_path / "cache", monkeypatch):
        yield served
    datasets.enable_progress_bars()


@pytest.fixture
def published(server, cola, tmp_path):
    """The layout of the hub's GLUE, with one configuration; the commit."""
    folder = tmp_path / "glue"
    (folder / "cola").mkdir(parents=True)
    (folder / "README.md").write_bytes(README)
    for split in SPLITS:
        (folder / "cola" / f"{split}-00000-of-00001.parquet").write_bytes((cola / f"{split}.parquet").read_bytes())
    return server.add(tasks.get("glue/cola").hub[0], folder, kind="datasets")


def read(task=None, limit=None):
    task = task or tasks.get("glue/cola")
    pick = None if limit is None else files.first(limit)
    return files.from_hub(task, task.wanted(None), dict.fromkeys(SPLITS, pick))


def test_found_fetched_and_then_read_without_the_hub(server, published, cola, tmp_path, monkeypatch):
    frames, revision = read()
    assert revision == published
    assert tasks.load(tasks.get("glue/cola")).revision == published
    for split in SPLITS:
        expected = pd.read_parquet(cola / f"{split}.parquet")[list(COLUMNS)]
        pd.testing.assert_frame_equal(frames[split], expected, check_dtype=False)
    rows = tasks.load(tasks.get("glue/cola"))
    assert (len(rows.train), len(rows.validation)) == (64, 32)
    assert rows.fingerprint == tasks.load(tasks.get("glue/cola"), cola).fingerprint
    with looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch, offline=True):
        again, revision = read()
        assert revision == published
        pd.testing.assert_frame_equal(again["train"], frames["train"])


def test_missing_data_are_reported_in_one_line(server, published):
    cola = tasks.get("glue/cola")
    name, _ = cola.hub
    for changed, message in {
        ("hub", ("acme/none", None)): "is not on the hub",
        ("hub", (name, "nope")): "could not be downloaded from the hub (BuilderConfig 'nope' not found",
        ("columns", ("text",)): "lacks the column text (it has sentence, label, idx",
        ("validation", "test"): "has no split 'test' (it has: train, validation)",
    }.items():
        with pytest.raises(DataError) as caught:
            read(replace(cola, **dict([changed])))
        assert message in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.field == "data"


def test_offline(tmp_path, monkeypatch):
    with (
        looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch, offline=True),
        pytest.raises(
            DataError, match=r"is not on this machine and the hub cannot be reached .* give a folder with train"
        ),
    ):
        tasks.load(tasks.get("glue/cola"))


def test_a_broken_download_is_reported_and_the_next_one_finishes(server, published):
    server.cut["cola/train-00000-of-00001.parquet"] = 500
    server.down_after_cut = True
    with pytest.raises(DataError) as caught:
        tasks.load(tasks.get("glue/cola"))
    assert "could not be downloaded from the hub" in str(caught.value) and "try again" in str(caught.value)
    assert "\n" not in str(caught.value) and caught.value.field == "data"
    server.down = server.down_after_cut = False
    assert len(tasks.load(tasks.get("glue/cola")).train) == 64
