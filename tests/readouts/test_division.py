"""Rows that fit a transform are neither shown nor held back; ids decide, not positions; indivisible sets are reported."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isoviz.errors import InputError
from isoviz.readouts import division
from isoviz.readouts.division import divide
from isoviz.vectors import VectorSet, demo_sets

RNG = np.random.default_rng(0)


def vectors(columns: pd.DataFrame, pairs: pd.DataFrame | None = None, relation: str | None = None) -> VectorSet:
    return VectorSet(RNG.normal(size=(len(columns), 3)), columns, pairs, relation, "made")  # type: ignore[arg-type]


def test_labels_are_divided_into_disjoint_thirds() -> None:
    labelled = vectors(pd.DataFrame({"label": ["a", "b", None] * 20}))
    shown, held_back = divide(labelled), divide(labelled, "held back")
    assert np.array_equal(shown.fit, held_back.fit)
    assert sorted([*shown.fit, *shown.rows, *held_back.rows]) == list(range(60))
    labels = shown.annotations.labels
    assert labels is not None
    expected = labelled.columns["label"].to_numpy()[shown.rows[labels.rows]]
    assert (np.array(["a", "b"])[labels.codes] == expected).all()
    assert "have no label" in shown.notes[0]
    assert shown.words == "Transforms are fitted on 20 rows; the numbers are of 20 others."
    assert shown.rest == "20 rows are held back."


def test_the_same_ids_are_divided_the_same_way_in_any_order() -> None:
    ids = [f"r{number}" for number in range(30)]
    first = vectors(pd.DataFrame({"id": ids}))
    second = vectors(pd.DataFrame({"id": ids[::-1]}))
    chosen = [set(vector_set.columns["id"].to_numpy()[divide(vector_set).rows]) for vector_set in (first, second)]
    assert chosen[0] == chosen[1]


def test_rows_that_pairs_tie_together_stay_together() -> None:
    ids = [f"s{number}" for number in range(60)]
    pairs = pd.DataFrame({"left": ids[::2], "right": ids[1::2], "score": RNG.uniform(0, 5, 30)})
    pairs.loc[len(pairs)] = ["s0", "s2", 3.0]  # ties two pairs together
    paired = vectors(pd.DataFrame({"id": ids}), pairs, "similarity")
    parts = [divide(paired), divide(paired, "held back")]
    assert set(parts[0].rows).isdisjoint(parts[1].rows)
    for part in parts:
        assert set(part.rows).isdisjoint(part.fit)
        rated = part.annotations.pairs
        assert rated is not None and len(rated.score) >= 7
        for left, right, score in zip(part.rows[rated.left], part.rows[rated.right], rated.score, strict=True):
            row = pairs[(pairs["left"] == ids[left]) & (pairs["right"] == ids[right])]
            assert row["score"].tolist() == [score]


def test_connected_pairs_are_divided_individually() -> None:
    ids = [f"s{number}" for number in range(40)]
    chain = pd.DataFrame({"left": ids[:-1], "right": ids[1:], "score": 1.0})
    shown, held_back = (
        divide(vectors(pd.DataFrame({"id": ids}), chain, "similarity"), part) for part in ("shown", "held back")
    )
    assert len(shown.fit) == 40 and "fitted on all 40 rows" in shown.words
    assert len(shown.annotations.pairs.score) + len(held_back.annotations.pairs.score) == 39  # type: ignore[union-attr]


def test_queries_are_divided_and_documents_fit() -> None:
    texts = demo_sets.read(demo_sets.RETRIEVAL)
    related = vectors(texts.columns, texts.pairs, texts.relation)
    shown, held_back = divide(related), divide(related, "held back")
    groups = texts.columns["group"].to_numpy()
    assert (groups[shown.fit] == "document").all() and len(shown.fit) == 2_000
    ids = texts.columns["id"].to_numpy()
    assert texts.pairs is not None
    grades = texts.pairs.set_index(["left", "right"])["score"].to_dict()
    query_ids: list[str] = []
    for part in (shown, held_back):
        relevance = part.annotations.queries
        assert relevance is not None
        queries = ids[part.rows[relevance.queries]]
        documents = ids[part.rows[relevance.documents]]
        assert all(query.startswith("q") for query in queries) and all(
            document.startswith("d") for document in documents
        )
        assert {
            (queries[q], documents[d]): grade
            for q, d, grade in zip(relevance.query, relevance.document, relevance.grade, strict=True)
        } == {pair: grade for pair, grade in grades.items() if pair[0] in set(queries)}
        query_ids += list(queries)
    assert sorted(query_ids) == sorted(ids[groups == "query"])
    assert len(shown.annotations.queries.queries) == 133  # type: ignore[union-attr]


def test_demo_sets_are_complete() -> None:
    for slug in demo_sets.TITLES:
        texts = demo_sets.read(slug)
        assert texts.columns["id"].is_unique and texts.columns["text"].str.len().gt(0).all()
        if texts.pairs is not None:
            assert texts.pairs[["left", "right"]].isin(set(texts.columns["id"])).all().all()
    with pytest.raises(KeyError):
        demo_sets.read("demo/other")


@pytest.mark.parametrize(
    ("too_small", "message"),
    [
        (vectors(pd.DataFrame({"label": list("ab") * 3})), "at least 12 rows, got 6"),
        (
            vectors(
                pd.DataFrame({"id": list("abcd")}),
                pd.DataFrame({"left": ["a"], "right": ["b"], "score": [1.0]}),
                "similarity",
            ),
            "at least 12 rated pairs, got 1",
        ),
        (
            vectors(
                pd.DataFrame({"id": list("abcd"), "group": ["query", *["document"] * 3]}),
                pd.DataFrame({"left": ["a"], "right": ["b"], "score": [1.0]}),
                "relevance",
            ),
            "at least 3 queries with a relevant document, got 1",
        ),
    ],
)
def test_too_few_rows_are_reported(too_small: VectorSet, message: str) -> None:
    with pytest.raises(InputError, match=message):
        divide(too_small)


def test_large_sets_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in {"MOST_FIT": 15, "MOST_ROWS": 10, "MOST_QUERIES": 4, "MOST_DOCUMENTS": 30}.items():
        monkeypatch.setattr(division, name, most)
    rows = vectors(pd.DataFrame({"label": ["a", "b"] * 45}))
    shown, held_back = divide(rows), divide(rows, "held back")
    assert (len(shown.fit), len(shown.rows), shown.notes[0]) == (15, 10, "A sample of 10 of 30 rows (seed 0).")
    assert set(shown.rows).isdisjoint([*held_back.rows, *shown.fit])
    ids = [f"s{number}" for number in range(120)]
    pairs = pd.DataFrame({"left": ids[::2], "right": ids[1::2], "score": np.arange(60.0)})
    rated = divide(vectors(pd.DataFrame({"id": ids}), pairs, "similarity"))
    assert len(rated.fit) == 15 and len(rated.annotations.pairs.score) == 10  # type: ignore[union-attr]
    texts = demo_sets.read(demo_sets.RETRIEVAL)
    part = divide(vectors(texts.columns, texts.pairs, texts.relation))
    relevance = part.annotations.queries
    assert relevance is not None and (len(relevance.queries), len(relevance.documents)) == (4, 30)
    chosen = set(texts.columns["id"].to_numpy()[part.rows])
    assert texts.pairs is not None
    assert set(texts.pairs[texts.pairs["left"].isin(chosen)]["right"]) <= chosen  # no answer is left out
    assert len(part.notes) == 2 and len(part.fit) == 15
