"""`isoviz compare`: a table for people, one document for programs, one line for mistakes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import isoviz
from isoviz.__main__ import main
from isoviz.operations.rows import RowsRequest, document
from isoviz.readouts.slices import Slicing
from isoviz.runs.store import Store
from tests.dashboard.made_up import config, fail, finish
from tests.readouts.searches import made


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path)
    for seed, (plain, isobn) in enumerate([(0.70, 0.71), (0.74, 0.73), (0.68, 0.70)]):
        finish(made, config(seed=seed), plain, 0.2, group="exp")
        finish(made, config("isobn", seed), isobn, 0.3, group="exp")
    fail(made, config("isobn", 3), group="exp")
    yield made
    made.close()


def test_an_experiment_as_text(store, tmp_path, capsys):
    assert main(["compare", "exp", "--store", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "demo/tiny-bert on demo/acceptability: accuracy" in text
    assert "IsoBN β = 0.5 − Baseline: +0.007 [−0.0" in text and "difference not shown" in text
    assert "seeds would show a true difference of this size" in text
    assert "0: 0.700  1: 0.740  2: 0.680" in text
    assert "seed 3: failed: out of *memory* <b>" in text


def test_runs_by_id_as_json(store, tmp_path, capsys):
    ids = [row.id for row in store.list() if row.status == "finished"]
    assert main(["compare", *ids, "--store", str(tmp_path), "--metric", "isoscore_star", "--json"]) == 0
    (part,) = json.loads(capsys.readouterr().out)["parts"]
    assert part["metric"] == "isoscore_star"
    assert part["comparisons"][0]["verdict"] == "no spread"  # 0.3 against 0.2 in every seed


def test_rows_of_a_search_are_those_of_the_engine(tmp_path):
    """The operation for agents, on documents and questions in files of their own."""
    search = made(seed=1)
    documents, questions = search.seen(0.0)
    for name, points in (("documents", documents), ("questions", questions)):
        np.save(tmp_path / f"{name}.npy", points)
    links = pd.DataFrame(search.relevance + np.array([1, 1, 0]), columns=["query", "document", "relevance"])
    links.to_csv(tmp_path / "links.csv", index=False)
    files = {"embeddings": "documents.npy", "queries": "questions.npy", "relevance": "links.csv"}
    request = RowsRequest(**{name: str(tmp_path / file) for name, file in files.items()}, limit=7)
    found, expected = document(request), isoviz.rows(documents, questions)
    assert found["sentences"] == list(expected.sentences) and found["n"] == 150
    top = expected.order("hubs")[:7]
    assert [row["row"] for row in found["rows"]] == (expected.row[top] + 1).tolist()
    assert [row["share of queries"] for row in found["rows"]] == pytest.approx(expected.found[top].tolist())
    assert [row["id"] for row in found["rows"]] == [str(row + 1) for row in expected.row[top]]


def test_slices_are_a_column_of_the_questions(tmp_path, capsys):
    search = made(seed=1)
    areas = np.array(["law", "tax"])[np.arange(60) % 2]
    for name, noise in (("a", 0.0), ("b", 0.3)):
        documents, questions = search.seen(noise)
        pd.DataFrame({"vector": list(documents)}).to_parquet(tmp_path / f"{name}.parquet")
        pd.DataFrame({"vector": list(questions), "area": areas}).to_parquet(tmp_path / f"{name}q.parquet")
    links = pd.DataFrame(search.relevance + np.array([1, 1, 0]), columns=["query", "document", "relevance"])
    links.to_csv(tmp_path / "links.csv", index=False)
    a, b, aq, bq = (str(tmp_path / f"{name}.parquet") for name in ("a", "b", "aq", "bq"))
    words = ["compare", a, b, "--queries", aq, bq, "--relevance", str(tmp_path / "links.csv")]
    assert main([*words, "--by", "area", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["slices"]
    by = Slicing(np.arange(60) % 2, ["law", "tax"])
    expected = isoviz.compare({"a": search.seen(0.0), "b": search.seen(0.3)}, search.relevance, by=by).slices
    assert [(one["slice"], one["n"]) for one in found] == [(one.slice, one.n) for one in expected]
    assert [one["value"] for one in found] == pytest.approx([one.value for one in expected])
    assert main([*words, "--by", "court"]) == 2
    assert "--queries: the table has no column 'court'" in capsys.readouterr().err
