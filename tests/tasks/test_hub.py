"""Data sets through the real libraries from a small hub on loopback: found, not found, gated, in the wrong shape, offline."""

from __future__ import annotations

import threading
from dataclasses import replace

import datasets
import pandas as pd
import pytest

from isoviz import tasks
from isoviz.errors import DataError
from isoviz.tasks import files
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
    for split in files.SPLITS:
        (folder / "cola" / f"{split}-00000-of-00001.parquet").write_bytes((cola / f"{split}.parquet").read_bytes())
    return server.add(tasks.get("glue/cola").hub[0], folder, kind="datasets")


def read(task=None, limit=None):
    task = task or tasks.get("glue/cola")
    pick = None if limit is None else files.first(limit)
    return files.from_hub(task, task.wanted(None), dict.fromkeys(files.SPLITS, pick))


def test_found_fetched_and_then_read_without_the_hub(server, published, cola, tmp_path, monkeypatch):
    frames, revision = read()
    assert revision == published
    assert tasks.load(tasks.get("glue/cola")).revision == published
    for split in files.SPLITS:
        expected = pd.read_parquet(cola / f"{split}.parquet")[list(COLUMNS)]
        pd.testing.assert_frame_equal(frames[split], expected, check_dtype=False)
    rows = tasks.load(tasks.get("glue/cola"))
    assert (len(rows.train), len(rows.validation)) == (64, 32)
    assert rows.fingerprint == tasks.load(tasks.get("glue/cola"), cola).fingerprint
    with looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch, offline=True):
        again, revision = read()
        assert revision == published
        pd.testing.assert_frame_equal(again["train"], frames["train"])


def test_only_the_chosen_rows_are_read(server, published, cola):
    frames, revision = read(limit=5)
    assert [list(frame.index) for frame in frames.values()] == [[0, 1, 2, 3, 4]] * 2
    assert revision == published
    capped = tasks.load(tasks.get("glue/cola"), max_train=5)
    full = tasks.load(tasks.get("glue/cola"), cola, max_train=5)
    pd.testing.assert_frame_equal(capped.train, full.train)
    assert len(capped.train) == 5


def test_missing_data_are_reported_in_one_line(server, published):
    cola = tasks.get("glue/cola")
    name, _ = cola.hub
    for changed, message in {
        ("hub", ("acme/none", None)): "is not on the hub",
        ("hub", (name, "nope")): "could not be downloaded from the hub (BuilderConfig 'nope' not found",
        ("columns", ("text",)): "lacks the column text (it has: sentence, label, idx)",
        ("validation", "test"): "has no split 'test' (it has: train, validation)",
    }.items():
        with pytest.raises(DataError) as caught:
            read(replace(cola, **dict([changed])))
        assert message in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.field == "data"


def test_gated(server, published):
    name, _ = tasks.get("glue/cola").hub
    server.repositories[f"datasets/{name}"].gated = True
    with pytest.raises(DataError, match=r"is gated: accept its terms .*hf auth login"):
        read()


def test_offline(tmp_path, monkeypatch):
    with (
        looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch, offline=True),
        pytest.raises(
            DataError, match=r"is not on this machine and the hub cannot be reached .* give a folder with train"
        ),
    ):
        tasks.load(tasks.get("glue/cola"))


def test_loads_that_overlap_while_the_hub_is_out_of_reach_leave_the_process_online(
    server, published, cola, tmp_path, monkeypatch
):
    """Both read the cache simultaneously, and the first to start finishes first."""
    from datasets.packaged_modules.cache import cache
    from huggingface_hub import constants

    tasks.load(tasks.get("glue/cola"))
    look_up = cache._find_hash_in_cache
    started = {name: threading.Event() for name in ("first", "second")}
    ended = threading.Event()
    flags = []

    def overlapping(**options):
        name = threading.current_thread().name
        started[name].set()
        assert (started["second"] if name == "first" else ended).wait(30)
        flags.append(constants.HF_HUB_OFFLINE or datasets.config.HF_HUB_OFFLINE)
        return look_up(**options)

    rows = {}

    def load(name):
        rows[name] = read()[0]["train"]

    with looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch), monkeypatch.context() as patch:
        patch.setattr(cache, "_find_hash_in_cache", overlapping)
        threads = {name: threading.Thread(target=load, args=(name,), name=name) for name in started}
        for name, thread in threads.items():
            thread.start()
            assert started[name].wait(30)
        threads["first"].join(30)
        ended.set()
        threads["second"].join(30)
        flags.append(constants.HF_HUB_OFFLINE or datasets.config.HF_HUB_OFFLINE)
    assert flags == [False] * 3  # nor does a load in another thread, of a model say, meet it meanwhile
    assert [len(rows[name]) for name in started] == [64, 64]


def test_a_broken_download_is_reported_and_the_next_one_finishes(server, published):
    server.cut["cola/train-00000-of-00001.parquet"] = 500
    server.down_after_cut = True
    with pytest.raises(DataError) as caught:
        tasks.load(tasks.get("glue/cola"))
    assert "could not be downloaded from the hub" in str(caught.value) and "try again" in str(caught.value)
    assert "\n" not in str(caught.value) and caught.value.field == "data"
    server.down = server.down_after_cut = False
    assert len(tasks.load(tasks.get("glue/cola")).train) == 64
