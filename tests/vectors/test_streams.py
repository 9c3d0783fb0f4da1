"""Tables larger than memory: the same vectors as when read whole, and the row and column of a fault in any batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from isoviz.__main__ import main
from isoviz.errors import InputError
from isoviz.models import profile
from isoviz.operations import transform
from isoviz.tables import text_files
from isoviz.vectors import columns as table_columns
from isoviz.vectors import reading

N, D = 500, 4
POINTS = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
NAMES = [f"x{place}" for place in range(D)]


def columns(points: np.ndarray = POINTS) -> pa.Table:
    return pa.table({"label": ["a", "b"] * (N // 2), **dict(zip(NAMES, points.T, strict=True))})


def lists(rows: list[Any] | None = None, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table(
        {"label": ["a", "b"] * (N // 2), "v": pa.array(rows or list(POINTS), kind or pa.list_(pa.float32()))}
    )


def write(folder: Path, ending: str, table: pa.Table) -> str:
    path = folder / f"table{ending}"
    if ending == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=230)
    elif ending == ".feather":
        pa.feather.write_feather(table, path, chunksize=90)
    elif ending == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, max_chunksize=90)
    else:
        table.to_pandas().to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    return str(path)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_columns, "STREAM_ABOVE", 0)
    monkeypatch.setattr(table_columns, "_BATCH", 2_000)
    monkeypatch.setattr(text_files, "BATCH", 2_000)


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize(
    "ending, make",
    [
        (".parquet", columns),
        (".parquet", lists),
        (".parquet", lambda: lists(kind=pa.list_(pa.float32(), D))),
        (".feather", columns),
        (".feather", lists),
        (".arrow", lists),
        (".csv", columns),
        (".tsv", columns),
    ],
)
def test_the_vectors_match_the_whole_table(ending, make, tmp_path, monkeypatch):
    path = write(tmp_path, ending, make())
    streamed = reading.array(path)
    assert isinstance(streamed, np.memmap)
    monkeypatch.setattr(table_columns, "STREAM_ABOVE", 2**30)
    table = reading.array(path)
    assert not isinstance(table, np.memmap) and table.dtype == streamed.dtype
    np.testing.assert_array_equal(streamed, table)
    np.testing.assert_array_equal(streamed.astype(np.float32), POINTS)


def test_an_empty_first_batch_hides_no_others(tmp_path, streamed):
    schema = lists().schema
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        stream.write_table(lists())
    np.testing.assert_array_equal(reading.array(str(tmp_path / "a.arrow")), POINTS)


def _ragged() -> pa.Table:
    return lists([list(row) for row in POINTS[:-1]] + [[1.0, 2.0]])


def _changed(value: float | None, kind: Any = float) -> pa.Table:
    rows = [[kind(number) for number in row] for row in POINTS]
    rows[470][2] = value
    return pa.table({name: [row[index] for row in rows] for index, name in enumerate(NAMES)})


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize(
    "ending, table, message",
    [
        (".parquet", _ragged(), "row 500, column 'v': 2 numbers where other rows have 4"),
        (".parquet", _changed(float("nan")), "row 471, dimension 3: the number is NaN"),
        (".parquet", _changed(None), "row 471, column 'x2': it is empty"),
        (".feather", _changed(float("inf")), "row 471, dimension 3: the number is infinite"),
        (".feather", lists([*POINTS[:-1], None]), "row 500, column 'v': it is empty"),
        (".csv", _changed(None), "row 471, column 'x2': it is empty"),
        (".csv", _changed("abc", str), "row 471, column 'x2': 'abc' is not a number"),
        (".csv", pa.table({"text": ["a"] * N}), "no column of lists and no column of numbers"),
    ],
)
def test_a_fault_in_a_late_batch_has_its_row_and_column(ending, table, message, tmp_path):
    with pytest.raises(InputError, match=message):
        reading.array(write(tmp_path, ending, table), field="in")


@pytest.mark.usefixtures("streamed")
def test_measure_and_transform_stream_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(profile, "STREAM_ABOVE", 100)
    monkeypatch.setattr(transform, "STREAM_ABOVE", 100)
    path = write(tmp_path, ".parquet", lists())
    np.save(tmp_path / "same.npy", POINTS)
    measured, images = [], []
    for source in (path, str(tmp_path / "same.npy")):
        assert main(["measure", "--embeddings", source, "--json"]) == 0
        measured.append({**json.loads(capsys.readouterr().out), "cloud": ""})
        assert main(["transform", "--chain", "zca", "--in", source, "--out", str(tmp_path / "out.npy")]) == 0
        capsys.readouterr()
        images.append(np.load(tmp_path / "out.npy"))
    assert measured[0] == measured[1]
    np.testing.assert_array_equal(*images)
    np.testing.assert_allclose(np.cov(images[0].T), np.eye(D), atol=1e-4)
