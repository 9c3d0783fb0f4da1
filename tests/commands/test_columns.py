"""Which vectors of a file, and which labels: the same options in every verb."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoviz.__main__ import main

POINTS = np.random.default_rng(0).normal(size=(40, 4))
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    np.savez("two.npz", embeddings=POINTS, other=POINTS[:, :3])
    np.save("plain.npy", POINTS)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return run


VERBS = {
    "transform": ("transform", "--chain", "zca", "--in", "{}", "--out", "out.npy"),
    "upgrade": ("upgrade", "--old", "{}", "--new", "{}"),
    "measure": ("measure", "--embeddings", "{}"),
    "check": ("check", "{}", "--save", "out.json"),
    "ruler": ("ruler", "--embeddings", "{}"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_one_array_of_a_file_is_named_in_every_verb(verb: str, call: Call) -> None:
    words = [word.format("two.npz") for word in VERBS[verb]]
    code, _, err = call(*words)
    assert code == 2 and "holds 2 arrays (embeddings, other); name the one to read" in err
    code, out, err = call(*words, "--column", "embeddings", "--json")
    assert code == 0, err
    if verb == "transform":
        np.testing.assert_allclose(np.cov(np.load("out.npy").T), np.eye(4), atol=1e-6)
    if verb == "measure":
        assert json.loads(out)["d"] == 4


def test_labels_in_a_table_of_any_column(call: Call) -> None:
    topics = pd.DataFrame({"topic": ["a", "b"] * 20, "year": range(40)})
    topics.to_csv("topics.csv", index=False)
    words = ("measure", "--embeddings", "plain.npy", "--labels", "topics.csv", "--json")
    code, _, err = call(*words)
    assert code == 2 and err.startswith("isoviz: --labels: 'topics.csv' has no column 'label'") and "topic, year" in err
    code, out, _ = call(*words, "--label-column", "topic")
    assert json.loads(out)["labels"]["classes"] == 2
    assert "only with --labels" in call("measure", "--embeddings", "plain.npy", "--label-column", "topic")[2]


def test_bad_rows_are_skipped_on_request(call: Call) -> None:
    rows = [*POINTS.tolist(), *POINTS[:10].tolist()]
    rows[4] = [None]
    pd.DataFrame({"v": rows}).to_parquet("a.parquet")
    for words in (
        ("measure", "--embeddings", "a.parquet"),
        ("ruler", "--embeddings", "a.parquet"),
        ("check", "a.parquet", "--save", "b.json"),
        ("transform", "--chain", "zca", "--in", "a.parquet", "--out", "out.npy"),
    ):
        code, _, err = call(*words)
        assert code == 2 and "1 of 50 rows has no readable vector, the first is row 5, column 'v'" in err
        assert "--skip-bad-rows" in err and len(err) < 302
        code, _, err = call(*words, "--skip-bad-rows")
        assert code == 0 and "left out" in err
    assert np.load("out.npy").shape == (49, 4)
