"""Bad input: one line each, with field, row and column."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from isoviz import allowed_paths, vectors
from isoviz.allowed_paths import Roots
from isoviz.errors import InputError
from isoviz.vectors import Columns

GOOD = np.arange(24, dtype=np.float32).reshape(8, 3) + 1
IDS = [f"t{row}" for row in range(8)]


def _array(points: Any, **options: Any) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        np.save(folder / "a.npy", points, allow_pickle=True)
        return vectors.read(folder / "a.npy", **options)

    return read


def _with(place: tuple[int, int], value: float, kind: str = "f4") -> np.ndarray:
    points = GOOD.astype(kind)
    with np.errstate(over="ignore"):
        points[place] = value
    return points


def _csv(columns: dict[str, Any], declared: Columns | None = None) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        pd.DataFrame(columns).to_csv(folder / "a.csv", index=False)
        return vectors.read(folder / "a.csv", declared or Columns())

    return read


def _text(name: str, content: str | bytes, texts: bool = False) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return vectors.read_texts(folder / name) if texts else vectors.read(folder / name)

    return read


def _twice(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        table = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["x", "x", "y"])
        if name.endswith(".parquet"):
            pa.parquet.write_table(table, folder / name)
        else:
            with pa.ipc.new_file(str(folder / name), table.schema) as writer:
                writer.write_table(table)
        return vectors.read(folder / name)

    return read


def _parquet(columns: dict[str, Any], declared: Columns | None = None) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        pa.parquet.write_table(pa.table(columns), folder / "a.parquet")
        return vectors.read(folder / "a.parquet", declared or Columns())

    return read


def _pairs(columns: dict[str, Any], ids: bool = True) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        known = {"id": IDS} if ids else {}
        frame = pd.DataFrame({**known, "x": GOOD[:, 0], "y": GOOD[:, 1]})
        frame.to_csv(folder / "a.csv", index=False)
        pd.DataFrame(columns).to_csv(folder / "pairs.csv", index=False)
        return vectors.read(folder / "a.csv", relations=folder / "pairs.csv")

    return read


def _beside(rows: int) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        np.save(folder / "a.npy", GOOD)
        pd.DataFrame({"label": ["a"] * rows}).to_csv(folder / "known.csv", index=False)
        return vectors.read(folder / "a.npy", beside=folder / "known.csv")

    return read


def _cut_off(folder: Path) -> Any:
    np.save(folder / "a.npy", GOOD)
    content = (folder / "a.npy").read_bytes()
    (folder / "a.npy").write_bytes(content[:-10])
    return vectors.read(folder / "a.npy")


def _outside(folder: Path) -> Any:
    np.save(folder / "a.npy", GOOD)
    allowed_paths.restrict_to(lambda: Roots((folder / "inside",)))
    return vectors.read(folder / "a.npy")


RAGGED = json.dumps({"v": [1, 2, 3]}) + "\n" + json.dumps({"v": [1, 2]}) + "\n"
SIMILAR = {"left": IDS[:4], "right": IDS[4:], "score": [0.1, 0.2, 0.3, 0.4]}
RELEVANT = {"query": IDS[:4], "document": IDS[4:], "relevance": [1, 2, 1, 1]}

CASES: dict[str, tuple[Callable[[Path], Any], str]] = {
    # arrays
    "no file": (lambda folder: vectors.read(folder / "a.npy"), r"no file '.*a\.npy'"),
    "an empty file": (_text("a.npy", b""), "is empty"),
    "objects": (_array(np.array([{}, []], dtype=object)), "pickled objects, which are never loaded"),
    "cut off": (_cut_off, "is cut off"),
    "one row": (_array(np.zeros((1, 4))), "1 vector; at least 2 are needed"),
    "one dimension": (_array(np.zeros((4, 1))), "1 dimension; at least 2 are needed"),
    "words": (_array(np.array([["a", "b"], ["c", "d"]])), "holds <U1, not numbers"),
    "NaN": (_array(_with((4, 1), np.nan)), "row 5, dimension 2: the number is NaN$"),
    "infinite": (_array(_with((4, 2), -np.inf)), "row 5, dimension 3: the number is infinite$"),
    "too large": (_array(_with((4, 1), 1e160, "f8")), r"row 5, dimension 2: the number is 1e\+160, above 1e\+100$"),
    "too large in a table": (_csv({"x": [1, 1e200, 3], "y": [1, 2, 3]}), r"row 2, dimension 1: the number is 1e\+200, above"),
    "overflow of float16": (_array(_with((7, 0), 1e6, "f2")), "row 8, dimension 1: .* float16 ends at 65,504"),
    "other rows beside": (_beside(7), "8 vectors, but 7 rows of texts, labels or ids"),
    # tables
    "another ending": (_text("a.pkl", b"x"), "is a pickle, which is not read; opening one runs its code"),
    "not Parquet": (_text("a.parquet", b"hello"), "is not Parquet: its content is text"),
    "not UTF-8": (_text("a.csv", b"x,y\n1,2\n\xff\xfe,1\n"), "is not UTF-8"),
    "a torn csv": (_text("a.csv", "x,y\n1,2\n1,2,3,4\n"), "row 2 has more cells than the header"),
    "a name twice": (_twice("a.parquet"), "a.parquet has two columns called 'x'"),
    "a comma in a text": (_text("a.csv", "text,label\nHello, world,0\nGood, bye,1\n", texts=True),
                          "a.csv: row 1 has more cells than the header \\(2\\); put texts that contain commas in double quotes"),
    "a semicolon in a text": (_text("a.csv", "text;label\na; b;0\nc; d;1\n", texts=True), "more cells than .* semicolons"),
    "a bad cell with decimal commas": (_text("a.csv", "x;y\n0,5;1,5\n0,6;n/a\n0,7;2,5\n"), "row 2, column 'y': 'n/a' is not a number"),
    "a column that is not there": (_parquet({"x": [1.0, 2.0], "label": ["a", "b"]}, Columns(label="kind")), "no column 'kind' for label"),
    "an empty cell": (_csv({"x": [1, 2, None], "y": [1, 2, 3]}), "row 3, column 'x': it is empty"),
    "a word among numbers": (_csv({"x": [1, 2, 3], "y": [1, "two", 3]}), "row 2, column 'y': 'two' is not a number"),
    "NaN in a csv": (_csv({"x": ["1", "nan", "3"], "y": [1, 2, 3]}), "row 2, column 'x': 'nan' is not a number"),
    "ragged lists": (_parquet({"v": [[1.0, 2.0], [1.0, 2.0], [1.0]]}), "row 3, column 'v': 1 number where other rows have 2"),
    "ragged lists in JSON": (_text("a.jsonl", RAGGED), "row 2, column 'v': 2 numbers where other rows have 3"),
    "a missing list": (_parquet({"v": [[1.0, 2.0], None, [1.0, 3.0]]}), "row 2, column 'v': it is empty"),
    "a hole in a list": (_parquet({"v": [[1.0, 2.0], [1.0, None]]}), "row 2, dimension 2: the number is NaN"),
    "lists of lists": (_parquet({"v": [[[1.0]], [[2.0]]]}), "holds lists of lists"),
    "lists of words": (_parquet({"v": [["a"], ["b"]]}), "holds lists of string, not of numbers"),
    "two columns of lists": (_parquet({"v": [[1.0, 2.0]] * 2, "w": [[1.0, 2.0]] * 2}), r"2 columns hold lists \(v, w\); name"),
    "no such column": (_csv({"x": [1, 2], "y": [3, 4]}, Columns(points="z")), r"no column 'z' \(available: x, y\)"),
    "one id twice": (_csv({"id": ["a", "b", "a"], "x": [1, 2, 3], "y": [1, 2, 3]}), "row 3, column 'id': the id 'a' is already in row 1"),
    "an empty id": (_csv({"id": ["a", None, "c"], "x": [1, 2, 3], "y": [1, 2, 3]}), "row 2, column 'id': it is empty"),
    "outside the allowed folders": (_outside, r"folders outside .*inside cannot be read from the browser"),
    "a NUL in the path": (lambda folder: vectors.read("a\0.npy"), "is no path"),
    # pairs
    "pairs of other columns": (_pairs({"a": [1], "b": [2]}), r"expected columns left, right, score or query, document"),
    "an unknown id": (_pairs({**SIMILAR, "right": ["t4", "t5", "x9", "t7"]}), "row 3, column 'right': no vector has the id 'x9'"),
    "a score in words": (_pairs({**SIMILAR, "score": [1, "much", 2, 3]}), "row 2, column 'score': 'much' is not a finite number"),
    "a pair twice": (_pairs({"left": ["t0"] * 4, "right": ["t1", "t2", "t3", "t1"], "score": [1, 2, 3, 4]}),
                     "row 4, column 'right': the same pair"),
    "equal scores": (_pairs({**SIMILAR, "score": [1] * 4}), "all 4 pairs have the same score"),
    "one query": (_pairs({**RELEVANT, "query": ["t0"] * 4}), "at least 2 queries"),
    "nothing relevant": (_pairs({**RELEVANT, "relevance": [1, 0, 0, 0]}), r"at least 2 queries with a relevant document \(got 1 of 4\)"),
    "query and document": (_pairs({**RELEVANT, "document": ["t1", "t5", "t6", "t7"]}), "'t1' is both a query and a document"),
    # texts
    "one text": (_text("a.txt", "only one\n\n", texts=True), "1 text; at least 2 are needed"),
    "texts not UTF-8": (_text("a.txt", b"one\n\xfftwo", texts=True), "is not UTF-8"),
    "two columns of texts": (_text("a.csv", "a,b\nx y,z\nu v,w\n", texts=True), r"name the column of the texts \(columns: a, b\)"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _fence_open() -> Any:
    yield
    allowed_paths.restrict_to(None)


@pytest.mark.parametrize("case", CASES)
def test_one_clear_line(tmp_path: Path, case: str) -> None:
    read, expected = CASES[case]
    with pytest.raises(InputError, match=expected) as caught:
        read(tmp_path)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    assert caught.value.field in ("vectors", "texts", "pairs", "labels") and message.startswith(
        f"{caught.value.field}: "
    )
