"""What single formats promise beside the vectors of their sample."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.tables import catalogue
from isoviz.vectors import Columns
from tests.tables.samples import POINTS, WORDS, lines

ROWS = lines().splitlines()
BASE64 = base64.b64encode(POINTS[0].tobytes()).decode()


@pytest.mark.parametrize(
    "text, words",
    [
        ("12 3\n" + "\n".join(ROWS), WORDS),
        ("12 3 9\n" + "\n".join(f"{row} " for row in ROWS), WORDS),
        ("\n".join(ROWS).replace("w3 ", ". . . ", 1), [*WORDS[:3], ". . .", *WORDS[4:]]),
        ("12 3\n" + lines().replace("w", "18"), [word.replace("w", "18") for word in WORDS]),
        ("\ufeff" + lines("\t").replace("\n", "\r\n"), WORDS),
        (lines().replace("w2 ", "w1 ", 1), None),
    ],
    ids=["header", "three numbers, trailing blanks", "blanks in a word", "numeric words", "tabs", "a word twice"],
)
def test_word_vectors_as_people_write_them(text: str, words: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8", newline="")
    read = vectors.read(tmp_path / "a.txt")
    np.testing.assert_allclose(read.points, POINTS, rtol=1e-6)
    assert read.columns["id"].tolist() == words if words else "id" not in read.columns


def test_numbers_without_words_and_lines_that_are_no_vectors(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "a.txt", POINTS)
    np.testing.assert_allclose(vectors.read(tmp_path / "a.txt").points, POINTS, rtol=1e-6)
    for text in (
        "A costs 1 2 3\nB costs 2 3 4\n",
        "It was 1999.5 then\nIt is 2026.5 now\n",
        "one\n",
        "12 3\nfirst of all\n",
    ):
        (tmp_path / "a.txt").write_text(text)
        assert catalogue.identified(tmp_path / "a.txt").slug == "lines"
    (tmp_path / "a.txt").write_text("\n".join([*ROWS * 5, "w1 0.5 x 0.5"]))
    with pytest.raises(InputError, match=r"row 61 \('w1'\) does not end in 3 numbers"):
        vectors.read(tmp_path / "a.txt")


@pytest.mark.parametrize(
    "content, ids",
    [
        ({"embeddings": POINTS.tolist(), "keys": WORDS, "dim": 3}, WORDS),
        ({"ids": WORDS, "embeddings": POINTS.tolist(), "documents": WORDS, "metadatas": [None] * 12}, WORDS),
        ({word: {"vector": row} for word, row in zip(WORDS, POINTS.tolist(), strict=True)}, WORDS),
        (POINTS.tolist(), None),
        (
            {"object": "list", "data": [{"index": i, "embedding": POINTS[i].tolist()} for i in reversed(range(12))]},
            None,
        ),
    ],
    ids=["keys", "Chroma", "objects", "list", "OpenAI"],
)
def test_shapes_of_json(content: object, ids: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(content))
    read = vectors.read(tmp_path / "a.json")
    np.testing.assert_allclose(read.points, POINTS, rtol=1e-6)
    assert read.columns["id"].tolist() == ids if ids else "id" not in read.columns


def test_openais_batch_has_a_row_per_input_and_a_bad_row_per_failed_request(tmp_path: Path) -> None:
    def line(name: str, *found: object) -> str:
        body = {"data": [{"index": place, "embedding": one} for place, one in enumerate(found)]}
        return json.dumps({"custom_id": name, "response": {"body": body} if found else None}) + "\n"

    rows = [line("a", BASE64), line("b", POINTS[1].tolist(), POINTS[2].tolist())]
    (tmp_path / "a.jsonl").write_text("".join(rows))
    read = vectors.read(tmp_path / "a.jsonl")
    np.testing.assert_allclose(read.points, POINTS[:3], rtol=1e-6)
    assert read.columns["id"].tolist() == ["a", "b/0", "b/1"]
    (tmp_path / "a.jsonl").write_text("".join([*rows, line("c")]))
    with pytest.raises(InputError, match="1 of 4 rows has no readable vector, the first is row 4"):
        vectors.read(tmp_path / "a.jsonl")


def test_faiss_indexes_that_keep_the_vectors_and_one_that_does_not(tmp_path: Path) -> None:
    import faiss

    flat = faiss.IndexFlatL2(3)
    lists = faiss.IndexIVFFlat(flat, 3, 1)
    lists.train(POINTS)
    named = faiss.IndexIDMap2(faiss.IndexFlatL2(3))
    named.add_with_ids(POINTS, np.arange(100, 112))
    graph = faiss.IndexHNSWFlat(3, 4)
    for index in (lists, graph):
        index.add(POINTS)
    for index in (lists, named, graph):
        faiss.write_index(index, str(tmp_path / "a.index"))
        np.testing.assert_array_equal(vectors.read(tmp_path / "a.index").points, POINTS)
    rotated = faiss.index_factory(3, "PCA2,Flat")
    rotated.train(POINTS)
    rotated.add(POINTS)
    faiss.write_index(rotated, str(tmp_path / "a.index"))
    with pytest.raises(InputError, match="is a FAISS IndexPreTransform, which does not keep the vectors as they are"):
        vectors.read(tmp_path / "a.index")


def test_hdf5_never_reads_another_file(tmp_path: Path) -> None:
    import h5py

    np.save(tmp_path / "secret.npy", POINTS)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = POINTS
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink("other.h5", "secret")
        file.create_dataset("raw", (12, 3), "f4", external=[(str(tmp_path / "secret.npy"), 128, 144)])
    with pytest.raises(InputError, match="keeps 'raw' in another file"):
        vectors.read(tmp_path / "a.h5")
    with pytest.raises(InputError, match=r"contains no array 'link' \(it has: raw\)"):
        vectors.read(tmp_path / "a.h5", Columns(points="link"))


def test_a_torch_file_is_never_unpickled(tmp_path: Path) -> None:
    import torch

    torch.save({"points": torch.tensor(POINTS).bfloat16()}, tmp_path / "a.pt")
    np.testing.assert_allclose(vectors.read(tmp_path / "a.pt").points, POINTS, rtol=1e-2)
    torch.save([torch.tensor(row) for row in POINTS], tmp_path / "a.pt")
    np.testing.assert_array_equal(vectors.read(tmp_path / "a.pt").points, POINTS)
    torch.save(Path("x"), tmp_path / "a.pt")
    with pytest.raises(InputError, match="holds other objects than tensors, which are never loaded"):
        vectors.read(tmp_path / "a.pt")
