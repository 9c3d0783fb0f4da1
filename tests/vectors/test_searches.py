"""A search from three files, from one, and from a folder as BEIR has it: the same set, and what did not match."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.readouts.division import annotations_of
from isoviz.vectors import TextSet, VectorSet, searches
from isoviz.vectors.reading import read_either

DOCUMENTS = {"a": "about cats", "b": "about dogs", "c": "about birds"}
QUESTIONS = {"1": "which animal barks", "2": "which animal flies"}
LINKS = [("1", "b", 1), ("2", "c", 2)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(DOCUMENTS.items(), columns=["id", "page_content"]).to_csv("documents.csv", index=False)
    pd.DataFrame(QUESTIONS.items(), columns=["id", "text"]).to_csv("questions.csv", index=False)
    pd.DataFrame(LINKS, columns=["query-id", "corpus-id", "score"]).to_csv("relevance.csv", index=False)
    return tmp_path


def known(found: TextSet | VectorSet) -> tuple[dict[str, str], list[Any]]:
    """Id → its side and text, and the links."""
    assert found.pairs is not None and found.relation == "relevance"
    rows = zip(found.columns["group"], found.columns["text"], strict=True)
    sides = {name: " ".join(row) for name, row in zip(found.columns["id"], rows, strict=True)}
    return sides, list(found.pairs.itertuples(index=False, name=None))


EXPECTED = {name: f"document {text}" for name, text in DOCUMENTS.items()} | {
    name: f"query {text}" for name, text in QUESTIONS.items()
}


def test_three_files_one_file_and_a_folder_are_the_same_search(here: Path) -> None:
    three = vectors.read_texts("documents.csv", questions="questions.csv", relations="relevance.csv")
    assert known(three) == (EXPECTED, [("1", "b", 1.0), ("2", "c", 2.0)])
    rows = [(name, text, "Passage") for name, text in DOCUMENTS.items()]
    rows += [(name, text, "question") for name, text in QUESTIONS.items()]
    pd.DataFrame(rows, columns=["id", "chunk", "kind"]).to_csv("all.csv", index=False)
    one = read_either("all.csv", relations="relevance.csv")
    assert known(one) == known(three) and one.notes == ()
    (here / "beir" / "qrels").mkdir(parents=True)
    for file, texts in (("corpus", DOCUMENTS), ("queries", QUESTIONS)):
        lines = [
            {
                "_id": name,
                **({"title": text.split()[0], "text": text.split()[1]} if file == "corpus" else {"text": text}),
            }
            for name, text in texts.items()
        ]
        (here / "beir" / f"{file}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="has corpus.jsonl, but no qrels/test.tsv"):
        read_either("beir")
    pd.DataFrame(LINKS, columns=["query-id", "corpus-id", "score"]).to_csv("beir/qrels/dev.tsv", sep="\t", index=False)
    assert known(read_either("beir")) == known(three)


def test_ids_that_are_on_both_sides_stay_apart(here: Path) -> None:
    points = np.eye(3, 4)
    np.save("documents.npy", points)
    np.save("questions.npy", points[:2] + 0.1)
    pd.DataFrame({"question": [1, 2], "document": [2, 3]}).to_csv("links.csv", index=False)
    found = vectors.read("documents.npy", questions="questions.npy", relations="links.csv")
    assert found.columns["id"].tolist() == ["1", "2", "3", "q:1", "q:2"] and found.pairs is not None
    assert found.pairs.to_numpy().tolist() == [["q:1", "2", 1.0], ["q:2", "3", 1.0]]
    relevance = annotations_of(found).queries
    assert relevance is not None and relevance.documents.tolist() == [0, 1, 2] and relevance.queries.tolist() == [3, 4]


def test_what_does_not_match_is_counted_with_three_examples(here: Path) -> None:
    more = [*LINKS, *((str(number), "x", 1) for number in range(5, 10))]
    pd.DataFrame(more, columns=["query", "document", "relevance"]).to_csv("relevance.csv", index=False)
    found = vectors.read_texts("documents.csv", questions="questions.csv", relations="relevance.csv")
    assert len(known(found)[1]) == 2
    assert "5 of 7 rows of relevance left out: 6 ids are not in the set, such as '5', '6', '7'." in found.notes


def test_texts_of_databases_are_found_and_unused_columns_named(here: Path) -> None:
    rows = [{"id": name, "payload": {"text": text, "year": 1999}} for name, text in DOCUMENTS.items()]
    (here / "points.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = vectors.read_texts("points.jsonl")
    assert found.columns["text"].tolist() == [*DOCUMENTS.values()]
    assert found.notes[0].startswith("Columns that are not used: payload.year")
    assert searches.unused_note(["id"], {"id"}) == ()


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: vectors.read_texts("documents.csv", questions="questions.csv"), "pairs: questions need relevance"),
        (
            lambda: vectors.read_texts("questions.csv", questions="questions.csv", relations="relevance.csv"),
            "pairs: 2 of 2 rows of relevance left out",
        ),
        (
            lambda: vectors.read("wide.npy", questions="narrow.npy", relations="rows.csv"),
            "queries: 3 dimensions, where",
        ),
    ],
)
def test_bad_input(here: Path, read: Callable[[], Any], message: str) -> None:
    np.save("wide.npy", np.eye(4))
    np.save("narrow.npy", np.eye(3))
    pd.DataFrame({"query": [1, 2], "document": [1, 2]}).to_csv("rows.csv", index=False)
    with pytest.raises(InputError, match=message):
        read()
