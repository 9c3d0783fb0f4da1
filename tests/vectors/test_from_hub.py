"""A column of a data set of the hub, through the real library from a small hub on loopback, and then without the hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.vectors import Columns
from tests.hub_client import looking_at
from tests.loopback_hub import LoopbackHub, serving

POINTS = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
NAME = "hub:lab/reviews:validation"
README = b"""---
configs:
- config_name: default
  data_files:
  - split: validation
    path: data/validation-*
dataset_info:
  config_name: default
  download_size: 4000
  dataset_size: 4000
---
"""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    folder = tmp_path / "reviews"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_bytes(README)
    frame = pd.DataFrame(
        {"text": [f"review {row}" for row in range(20)], "embedding": list(POINTS), "label": [0, 1] * 10}
    )
    frame.to_parquet(folder / "data" / "validation-00000-of-00001.parquet")
    datasets.disable_progress_bars()
    with serving() as served, looking_at(served.endpoint, tmp_path / "cache", monkeypatch):
        served.add("lab/reviews", folder, kind="datasets")
        yield served
    datasets.enable_progress_bars()


def test_vectors_and_texts_of_a_split(hub, tmp_path, monkeypatch):
    read = vectors.read(NAME, Columns(points="embedding"))
    np.testing.assert_array_equal(read.points, POINTS)
    assert read.columns["label"].tolist() == [0, 1] * 10
    assert vectors.read_texts(NAME).columns["text"].tolist()[3] == "review 3"
    with pytest.raises(InputError, match=r"'lab/reviews' has no split 'test' \(it has: validation\)"):
        vectors.read("hub:lab/reviews:test")
    with pytest.raises(InputError, match="is not on the hub"):
        vectors.read("hub:lab/none")
    with looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch, offline=True):
        assert vectors.read(NAME, Columns(points="embedding")).key == read.key, "from the cache"
        with pytest.raises(InputError, match="is not on this machine") as caught:
            vectors.read("hub:lab/none")
    assert caught.value.field == "vectors" and "\n" not in str(caught.value)


def test_a_name_reads_no_folder_of_the_server(hub, tmp_path, monkeypatch):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "train.csv").write_text("text\nsecret one\nsecret two\n")
    (tmp_path / "cwd" / "lab" / "own").mkdir(parents=True)
    (tmp_path / "cwd" / "lab" / "own" / "train.csv").write_text("text\nsecret one\nsecret two\n")
    monkeypatch.chdir(tmp_path / "cwd")
    for name in ("../secret", "text", "csv", "/etc", "lab/..", ".lab/x", "lab/own/../..", "lab\\own"):
        with pytest.raises(InputError, match="is not a data set of the hub|is also a folder|is not on the hub"):
            vectors.read_texts(f"hub:{name}:train")
    with pytest.raises(InputError, match="'lab/own' is also a folder on this server"):
        vectors.read_texts("hub:lab/own")
