"""Every format gives the same vectors, columns and pairs."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from safetensors.numpy import save_file

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.tables import catalogue
from isoviz.vectors import Columns
from isoviz.vectors import columns as table_columns

POINTS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
KNOWN = {
    "id": [f"t{row}" for row in range(12)],
    "text": [f"text {row}" for row in range(12)],
    "label": ["red", "blue"] * 6,
}
DIMENSIONS = {f"x{index}": POINTS[:, index] for index in range(3)}


def _lists() -> pa.Table:
    return pa.table({**KNOWN, "embedding": pa.array(POINTS.tolist(), pa.list_(pa.float32()))})


def _fixed() -> pa.Table:
    flat = pa.array(POINTS.ravel(), pa.float32())
    return pa.table({**KNOWN, "embedding": pa.FixedSizeListArray.from_arrays(flat, 3)})


def _stream(path: Path) -> None:
    table = _lists()
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


WRITERS: dict[str, Callable[[Path], object]] = {
    "a.npy": lambda path: np.save(path, POINTS),
    "double.npy": lambda path: np.save(path, POINTS.astype(np.float64)),
    "a.npz": lambda path: np.savez_compressed(path, points=POINTS),
    "a.safetensors": lambda path: save_file({"points": POINTS}, path),
    "lists.parquet": lambda path: pa.parquet.write_table(_lists(), path, row_group_size=5),
    "fixed.parquet": lambda path: pa.parquet.write_table(_fixed(), path, row_group_size=5),
    "wide.parquet": lambda path: pa.parquet.write_table(pa.table({**KNOWN, **DIMENSIONS}), path),
    "a.feather": lambda path: pa.feather.write_feather(_fixed(), str(path)),
    "a.arrow": _stream,
    "a.csv": lambda path: pd.DataFrame({**KNOWN, **DIMENSIONS}).to_csv(path, index=False),
    "a.tsv": lambda path: pd.DataFrame({**KNOWN, **DIMENSIONS}).to_csv(path, index=False, sep="\t"),
    "A.CSV": lambda path: pd.DataFrame({**KNOWN, **DIMENSIONS}).to_csv(path, index=False),
    "index.csv": lambda path: pd.DataFrame({**KNOWN, **DIMENSIONS}).to_csv(path),
    "filtered.parquet": lambda path: pd.DataFrame({**KNOWN, **DIMENSIONS}, index=[*range(11), 12]).to_parquet(path),
    "semicolons.csv": lambda path: pd.DataFrame({**KNOWN, **DIMENSIONS}).to_csv(
        path, index=False, sep=";", decimal=","
    ),
    "trailing.csv": lambda path: path.write_text(
        pd.DataFrame({**KNOWN, **DIMENSIONS}).to_csv(index=False).replace("\n", ",\n").replace(",\n", "\n", 1)
    ),
    "lists.csv": lambda path: pd.DataFrame({**KNOWN, "v": [str(row) for row in POINTS.tolist()]}).to_csv(
        path, index=False
    ),
    "a.jsonl": lambda path: pd.DataFrame({**KNOWN, "v": POINTS.tolist()}).to_json(path, orient="records", lines=True),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_vectors(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    read = vectors.read(path)
    assert read.points.dtype in (np.float32, np.float64)
    np.testing.assert_allclose(read.points, POINTS, rtol=1e-6)
    assert (read.n, read.d, read.name) == (12, 3, name)
    if path.suffix.lower() not in catalogue.endings("array"):
        assert {column: read.columns[column].tolist() for column in read.columns} == KNOWN


def test_columns_by_name_and_by_pattern(tmp_path):
    frame = pd.DataFrame({"title": KNOWN["text"], "kind": KNOWN["label"], "year": range(12), **DIMENSIONS})
    frame.to_csv(tmp_path / "a.csv", index=False)
    by_pattern = vectors.read(tmp_path / "a.csv", Columns(points="x*", text="title", label="kind"))
    np.testing.assert_allclose(by_pattern.points, POINTS, rtol=1e-6)
    assert by_pattern.columns["text"].tolist() == KNOWN["text"]
    assert vectors.read(tmp_path / "a.csv", Columns(points="x2,x0")).points[:, 1] == pytest.approx(POINTS[:, 0])
    assert vectors.read(tmp_path / "a.csv").d == 4, "without a pattern every column of numbers is a dimension"


@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_a_large_file_is_mapped_and_kept_by_its_place(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    WRITERS[path.name](path)
    monkeypatch.setattr("isoviz.tables.arrays.MAP_ABOVE", 64)
    monkeypatch.setattr("isoviz.vectors.sets.MOST_KEPT", 64)
    read = vectors.read(path)
    assert isinstance(read.points, np.memmap) and not read.points.flags.writeable
    key = vectors.keep(read)
    np.testing.assert_array_equal(vectors.load(key).points, POINTS)
    WRITERS[path.name](path)
    with path.open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(KeyError):
        vectors.load(key)
    path.unlink()
    moved = tmp_path / f"double{suffix}"
    WRITERS[path.name](moved)
    assert vectors.keep(vectors.read(moved)) == key
    np.testing.assert_array_equal(vectors.load(key).points, POINTS)


def test_pairs_are_similarities_or_relevance_by_their_columns(tmp_path):
    WRITERS["a.csv"](tmp_path / "a.csv")
    pd.DataFrame({"left": ["t0", "t1", "t2"], "right": ["t3", "t4", "t5"], "score": [0.1, 0.5, 1]}).to_csv(
        tmp_path / "pairs.csv", index=False
    )
    read = vectors.read(tmp_path / "a.csv", relations=tmp_path / "pairs.csv")
    assert read.relation == "similarity" and read.pairs is not None
    assert read.pairs["score"].tolist() == [0.1, 0.5, 1.0]
    pd.DataFrame({"query-id": ["t0", "t1"], "corpus-id": ["t3", "t4"], "score": [1, 2]}).to_csv(
        tmp_path / "qrels.tsv", index=False, sep="\t"
    )
    assert vectors.read(tmp_path / "a.csv", relations=tmp_path / "qrels.tsv").relation == "relevance"


def test_ids_keep_their_zeros(tmp_path):
    (tmp_path / "a.csv").write_text("ID,x,y\n01,1,2\n1,2,3\n001,4,9\n")
    assert vectors.read(tmp_path / "a.csv").columns["id"].tolist() == ["01", "1", "001"]
    (tmp_path / "pairs.csv").write_text("left,right,score\n01,1,1\n1,001,2\n01,001,3\n")
    read = vectors.read(tmp_path / "a.csv", relations=tmp_path / "pairs.csv")
    assert read.pairs is not None and read.pairs["right"].tolist() == ["1", "001", "001"]
    (tmp_path / "b.csv").write_text("Code,x,y\n01,1,2\n1,2,3\n")
    assert vectors.read(tmp_path / "b.csv", Columns(id="Code")).columns["id"].tolist() == ["01", "1"]


def test_labels_may_be_missing(tmp_path):
    (tmp_path / "a.csv").write_text("label,group,x,y\n1,a,1,2\n,,2,3\n0,b,4,9\n")
    columns = vectors.read(tmp_path / "a.csv").columns
    assert columns.isna().sum().tolist() == [1, 1]
    assert columns["label"].dropna().tolist() == [1, 0] and columns["label"].dtype.kind == "i"


def test_a_set_is_kept_by_its_content(tmp_path):
    WRITERS["fixed.parquet"](tmp_path / "fixed.parquet")
    read = vectors.read(tmp_path / "fixed.parquet")
    key = vectors.keep(read)
    again = vectors.load(key)
    np.testing.assert_array_equal(again.points, read.points)
    assert again.columns.equals(read.columns) and again.key == key == read.key
    changed = vectors.from_points(read.points + 1, read.columns)
    assert changed.key != key
    other = read.columns.assign(label=["red"] * 12)
    assert vectors.from_points(read.points, other).key != key
    vectors.forget(key)
    with pytest.raises(KeyError):
        vectors.load(key)


def test_texts_are_lines_or_a_column(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n two \nthree", encoding="utf-8")
    assert vectors.read_texts(tmp_path / "a.txt").columns["text"].tolist() == ["one", "two", "three"]
    pd.DataFrame({"review": KNOWN["text"], "label": KNOWN["label"], "stars": range(12)}).assign(
        label=KNOWN["label"]
    ).to_csv(tmp_path / "a.csv", index=False)
    read = vectors.read_texts(tmp_path / "a.csv", Columns(text="review"))
    assert read.columns["text"].tolist() == KNOWN["text"] and read.columns["label"].tolist() == KNOWN["label"]
    key = vectors.keep(read)
    stored = vectors.load_any(key)
    assert isinstance(stored, vectors.TextSet) and stored.columns.equals(read.columns)
    with pytest.raises(KeyError):
        vectors.load(key)


def write_csv(path: Path, names: str, rows: list[str]) -> Path:
    path.write_text("\n".join([names, *rows] if names else rows) + "\n")
    return path


FRACTIONS = np.random.default_rng(0).normal(size=(20, 3)).round(4)


@pytest.mark.parametrize("above", [0, 10**9], ids=["whole", "streamed"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_file_without_a_header_keeps_its_first_vector(tmp_path, separator, above, monkeypatch):
    monkeypatch.setattr(table_columns, "STREAM_ABOVE", above)
    rows = [separator.join(map(str, row)) for row in FRACTIONS]
    path = write_csv(tmp_path / "a.csv", "", [row.replace(".", ",") for row in rows] if separator == ";" else rows)
    with pytest.warns(UserWarning, match=r"a\.csv has no header"):
        points, columns = vectors.reading.named_array(str(path), None, "vectors")
    np.testing.assert_allclose(points, FRACTIONS)
    assert columns == ["1", "2", "3"]


@pytest.mark.parametrize("kind", ["number", "label", "time", "scale"])
def test_a_column_unlike_a_dimension_is_named(tmp_path, kind):
    odd = {"number": range(20), "label": [row % 2 for row in range(20)], "time": np.linspace(0.1, 0.9, 20)}
    odd["scale"] = 1e6 * FRACTIONS[::-1, 0]
    rows = [",".join(map(str, [value, *row])) for value, row in zip(odd[kind], FRACTIONS, strict=True)]
    path = write_csv(tmp_path / "a.csv", "other,a,b,c", rows)
    with pytest.warns(UserWarning, match=": other; "):
        assert vectors.read(path).facts["dimensions"] == ["other", "a", "b", "c"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert vectors.read(path, Columns(points="a,b,c")).d == 3
        write_csv(
            path,
            "other,a,b,c",
            [",".join(map(str, (100 * row).astype(int))) for row in np.c_[FRACTIONS, FRACTIONS[:, 0]]],
        )
        assert vectors.read(path).d == 4  # whole numbers throughout, as quantised vectors have
        write_csv(path, "dead,a,b,c", [",".join(map(str, [0, *row])) for row in FRACTIONS])
        assert vectors.read(path).d == 4  # a dimension that is always 0


def test_labels_ids_and_texts_stay_as_they_are_written(tmp_path):
    rows = [f"{row},5;{row},50;0{row % 2};{row % 2};0,1;x{row}" for row in range(9)] + ["1,0;4;1;1;1,5;x9"]
    path = write_csv(tmp_path / "a.csv", "id;text;label;group;a;b", rows)
    content = vectors.read_texts(path).columns
    assert content["id"].tolist()[:2] == ["0,5", "1,5"] and content["text"].tolist()[:2] == ["0,50", "1,50"]
    assert content["label"].tolist()[-2:] == ["00", "1"] and content["group"].tolist()[:2] == [0, 1]
    path = write_csv(tmp_path / "b.csv", "said;a;b", [f"{row},50;0,5;{row},25" for row in range(9)] + ["four;1,5;x"])
    assert vectors.read_texts(path, Columns(text="said")).columns["text"].tolist()[:2] == ["0,50", "1,50"]


def _cells(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


WRITTEN = {
    "bars": lambda row: "|".join(map(str, row)),
    "commas": lambda row: f'"{",".join(map(str, row))}"',
    "blanks": lambda row: " ".join(map(str, row)),
    "brackets": lambda row: f'"[{"  ".join(map(str, row))}]"',
    "array": lambda row: f'"array([{", ".join(map(str, row))}], dtype=float32)"',
    "tensor": lambda row: f"\"tensor([{', '.join(map(str, row))}], device='cuda:0', grad_fn=<DivBackward0>)\"",
    "braces": lambda row: f'"{{{",".join(map(str, row))}}}"',
    "base64": lambda row: base64.b64encode(np.array(row, "<f4").tobytes()).decode(),
}
FOURS = np.random.default_rng(1).normal(size=(20, 4)).round(4)


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_vector_in_one_cell_is_read_beside_an_id_of_another_name(tmp_path, kind):
    rows = [f"{100 + place},{WRITTEN[kind](row.tolist())}" for place, row in enumerate(FOURS)]
    read = vectors.read(_cells(tmp_path / "a.csv", "item,content", rows))
    np.testing.assert_allclose(read.points, FOURS, rtol=1e-6)
    assert read.facts["dimensions"] == ["content"]


@pytest.mark.parametrize(
    "cell, problem",
    [
        (
            "[0.1 0.2 ... 0.9]",
            r"row 1, column 'embedding': '\[0.1 0.2 ... 0.9\]': the numbers are missing where numpy wrote",
        ),
        ("0.1/0.2/0.3/0.4", "column 'embedding' holds no vectors that can be read, but '0.1/0.2/0.3/0.4'"),
        ("see file 3", "column 'embedding' holds no vectors that can be read, but 'see file 3'"),
        ("[[0.1, 0.2], [0.3, 0.4]]", "it holds lists of lists"),
    ],
)
def test_ids_are_never_measured_in_place_of_vectors_that_cannot_be_read(tmp_path, cell, problem):
    rows = [f'{row},{row % 3},"{cell}"' for row in range(9)]
    for header in ("user_id,item_id,embedding", "item,number,embedding"):
        path = _cells(tmp_path / "a.csv", header, rows)
        with pytest.raises(InputError, match=problem):
            vectors.read(path)
        with pytest.raises(InputError, match=problem):
            vectors.reading.array(str(path))
    with pytest.raises(InputError, match="no column of numbers|column 'note'"):
        vectors.read(_cells(tmp_path / "b.csv", "user_id,item_id,note", rows))


@pytest.mark.parametrize(
    "text", ["['calm']", "[Verse 1]", "48.1,11.6", "1,234,567", "2020-01-02", "call 030 123 45 67"]
)
def test_text_that_begins_like_a_vector_stays_text(tmp_path, text):
    rows = [f'"{text}",{row[0]},{row[1]}' for row in FOURS]
    assert vectors.read(_cells(tmp_path / "a.csv", "said,x,y", rows)).facts["dimensions"] == ["x", "y"]


def test_bad_rows_are_counted_and_left_out_on_request(tmp_path, monkeypatch):
    rows = [*FOURS.tolist()]
    rows[4], rows[9], rows[12] = [None], None, [1.0, float("nan"), 2.0, 3.0]
    names = [f"t{row}" for row in range(20)]
    pa.parquet.write_table(pa.table({"id": names, "v": rows}), tmp_path / "a.parquet", row_group_size=6)
    good = np.delete(FOURS, [4, 9, 12], axis=0)
    problem = "3 of 20 rows have no readable vector, the first is row 5, column 'v': 1 number where"
    for above in (2**30, 0):
        monkeypatch.setattr(table_columns, "STREAM_ABOVE", above)
        with pytest.raises(InputError, match="20 rows have no readable vector, the first is row 5") as refused:
            vectors.reading.array(str(tmp_path / "a.parquet"))
        assert "--skip-bad-rows" in refused.value.advice
        with pytest.warns(UserWarning, match="of 20 rows have no readable vector, the first is row 5.*; left out"):
            np.testing.assert_array_equal(vectors.reading.array(str(tmp_path / "a.parquet"), skip_bad=True), good)
    with pytest.raises(InputError, match=problem):
        vectors.read(tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match=problem):
        read = vectors.read(tmp_path / "a.parquet", skip_bad=True)
    assert read.columns["id"].tolist() == [name for row, name in enumerate(names) if row not in (4, 9, 12)]
    assert read.facts["skipped"].startswith("3 of 20 rows")
    array = FOURS.copy()
    array[3, 1] = np.inf
    np.save(tmp_path / "a.npy", array)
    pd.DataFrame({"label": names}).to_csv(tmp_path / "labels.csv", index=False)
    read = vectors.read(tmp_path / "a.npy", beside=tmp_path / "labels.csv", skip_bad=True)
    assert (read.n, read.columns["label"][3]) == (19, "t4")


def test_the_first_line_of_labels_is_a_row_or_a_header_by_their_number(tmp_path):
    np.save(tmp_path / "a.npy", POINTS)
    for content in ("\n".join(KNOWN["label"]), "kind\n" + "\n".join(KNOWN["label"]), "\n".join(["0", "1"] * 6)):
        (tmp_path / "labels.tsv").write_text(content)
        labels = vectors.read(tmp_path / "a.npy", beside=tmp_path / "labels.tsv").columns["label"]
        assert labels.map(str).tolist() == (KNOWN["label"] if "red" in content else ["0", "1"] * 6)
    (tmp_path / "labels.tsv").write_text("text\n" + "\n".join(KNOWN["label"][:11]))
    with pytest.raises(InputError, match="12 vectors, but 11 rows .*; the first line, 'text', was read as the header"):
        vectors.read(tmp_path / "a.npy", beside=tmp_path / "labels.tsv")
    (tmp_path / "labels.tsv").write_text("topic\tyear\n" + "a\t1\n" * 12)
    with pytest.raises(
        InputError, match="labels: 'labels.tsv' has no column 'label', .*one of its columns: topic, year"
    ):
        vectors.read(tmp_path / "a.npy", beside=tmp_path / "labels.tsv")
    assert (
        vectors.read(tmp_path / "a.npy", Columns(label="topic"), beside=tmp_path / "labels.tsv").columns["label"][0]
        == "a"
    )


@pytest.mark.parametrize("above", [0, 10**9], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", ["R", "Excel", "tabs"])
def test_tables_of_r_and_excel(tmp_path, kind, above, monkeypatch):
    monkeypatch.setattr(table_columns, "STREAM_ABOVE", above)
    with_commas = [[str(value).replace(".", ",") for value in row] for row in FOURS.tolist()]
    lines = {
        "R": ["V1\tV2\tV3\tV4", *("\t".join([f"r{row}", *map(str, FOURS[row])]) for row in range(20))],
        "Excel": ["sep=;", "id;a;b;c;d", *(";".join([f"r{row}", *with_commas[row]]) for row in range(20))],
        "tabs": ["id\ta\tb\tc\td", *("\t".join([f"r{row}", *with_commas[row]]) for row in range(20))],
    }[kind]
    path = tmp_path / ("a.csv" if kind == "Excel" else "a.tsv")
    path.write_text("\n".join(lines) + "\n")
    np.testing.assert_allclose(vectors.reading.array(str(path)), FOURS)
    assert vectors.read(path).columns["id"].tolist() == [f"r{row}" for row in range(20)]
