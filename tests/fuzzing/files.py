"""Files that are damaged, or something else than their name says, and the readers that people's files go through."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
from hypothesis import strategies as st
from safetensors.numpy import save

from isoviz import tasks, vectors
from isoviz.errors import LONGEST, InputError
from isoviz.tables import arrays, catalogue
from isoviz.tasks import own
from isoviz.tasks.protocol import OwnTask
from tests.fuzzing import nasty
from tests.tables.samples import SAMPLES

Content = tuple[str, bytes]
"""A file's name and its bytes."""


def points(n: int = 24, d: int = 4) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def table(rows: int = 24) -> pd.DataFrame:
    texts = [f"row {row} of a small table with some words" for row in range(rows)]
    return pd.DataFrame({"text": texts, "second": texts[::-1], "label": [row % 2 for row in range(rows)]})


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_that_promises(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    """Only a header: it announces numbers that are missing."""
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def npz(encrypted: bool = False, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    content = bytearray(buffer.getvalue())
    if encrypted:  # the flag of an encrypted member, in its own header and in the directory
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(mark) + place] |= 1
    return bytes(content)


def safetensors_of(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def jsonl(frame: pd.DataFrame) -> bytes:
    return frame.to_json(orient="records", lines=True).encode()


def _whole_arrays() -> list[Content]:
    good = points()
    odd = [np.array(3.0), np.zeros((0, 4)), np.zeros((4, 0)), np.zeros(5), np.zeros((2, 2, 2)), np.full((9, 3), np.nan),
           np.full((9, 3), 1e308), np.full((9, 3), np.inf), np.zeros((9, 3)), np.ones((9, 3), complex), np.array([["a", "b"]]),
           np.array([[{}, None]], dtype=object), np.ones((9, 3), bool), np.ones((1, 3)), np.ones((9, 1)), np.full((9, 3), 1e-320),
           np.zeros((3, 3), "datetime64[s]"), np.zeros((3, 3), [("a", "f4"), ("b", "i4")]), np.zeros((3, 3), "V7"),
           np.zeros((3, 3), "uint64") - np.uint64(1), np.asfortranarray(good), good.astype(np.float16), good.astype(">f8")]  # fmt: skip
    f32 = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    return [
        ("points.npy", npy(good)),
        *((f"odd{index}.npy", npy(array)) for index, array in enumerate(odd)),
        *((f"promise{index}.npy", npy_that_promises(shape)) for index, shape in enumerate(
            [(10**14, 1), (10**9, 10**5), (2**62, 4), (10**30, 2), (-1, 4), (4, -1), (3,)])),
        ("dtype.npy", npy_that_promises((2, 2), "<f99")),
        ("object.npy", npy_that_promises((2, 2), "|O")),
        ("points.npz", npz(points=npy(good))),
        ("two.npz", npz(a=npy(good), b=npy(good))),
        ("none.npz", npz()),
        ("locked.npz", npz(encrypted=True, points=npy(good))),
        ("notarray.npz", npz(points=b"no array")),
        ("promise.npz", npz(points=npy_that_promises((10**14, 1)))),
        ("object.npz", npz(points=npy(np.array([[{}]], dtype=object)))),
        ("points.safetensors", save({"points": good})),
        ("huge.safetensors", struct.pack("<Q", 2**63) + b"{}"),
        ("deep.safetensors", safetensors_of(b'{"a":' * 5000)),
        ("lies.safetensors", safetensors_of({"a": f32 | {"shape": [2**40, 2]}}, b"\0" * 16)),
        ("dtype.safetensors", safetensors_of({"a": f32 | {"dtype": "F99"}}, b"\0" * 16)),
        ("eight.safetensors", safetensors_of({"a": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [0, 4]}}, b"\0" * 4)),
        ("brain.safetensors", safetensors_of({"a": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}, b"\0" * 8)),
        ("empty.safetensors", b""),
        ("empty.npy", b""),
        ("nothing.npz", b"PK"),
        ("magic.npy", b"\x93NUMPY"),
        ("version.npy", b"\x93NUMPY\x09\x00" + b"\0" * 64),
    ]  # fmt: skip


def _whole_tables() -> list[Content]:
    good = table()
    wide = pd.DataFrame([[0] * 3000], columns=[f"column{number}" for number in range(3000)])
    return [
        ("good.csv", good.to_csv(index=False).encode()),
        ("good.tsv", good.to_csv(index=False, sep="\t").encode()),
        ("good.jsonl", jsonl(good)),
        ("good.parquet", parquet(good)),
        ("wide.csv", wide.to_csv(index=False).encode()),
        ("latin.csv", "text,label\nmäßig,1\n".encode("latin-1")),
        ("sixteen.csv", "text,label\na,1\n".encode("utf-16")),
        ("nul.csv", b"text,label\na\0b,1\n\0\0,2\n"),
        ("ragged.csv", b"text,label\na,1,2,3\nb\n"),
        ("quote.csv", b'text,label\n"never closed,1\n'),
        ("header.csv", b"text,label\n"),
        ("blank.csv", b"\n\n\n"),
        ("twice.csv", b"text,text,label,label\na,b,1,2\nc,d,3,4\n"),
        ("unnamed.csv", b",,\n1,2,3\n4,5,6\n"),
        ("long.csv", b"x" * 300_000 + b",label\na,1\nb,2\n"),
        ("many.csv", b",".join(b"c%d" % number for number in range(20_000)) + b"\n"),
        ("digits.csv", b"text,label\na," + b"9" * 400 + b"\nb,1e309\nc,nan\nd,-inf\n"),
        ("deep.jsonl", b'{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
        ("deepobject.jsonl", b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n"),
        ("digits.jsonl", b'{"text":"a","label":' + b"9" * 5000 + b"}\n"),
        ("surrogate.jsonl", b'{"text":"a \\ud800 b","label":"\\udfff"}\n{"text":"c","label":"d"}\n'),
        ("list.jsonl", b"[1,2]\n[3,4]\n"),
        ("mixed.jsonl", b'{"text":"a","label":1}\n{"text":{"a":[1]},"label":[1]}\n{"text":null,"label":{}}\n'),
        ("bom.jsonl", b"\xef\xbb\xbf" + jsonl(good)),
        ("empty.csv", b""),
        ("empty.parquet", b""),
        ("magic.parquet", b"PAR1PAR1"),
        ("norows.parquet", parquet(good.iloc[:0])),
        ("binary.parquet", parquet(pd.DataFrame({"text": [b"\xff\xfe", b"\0"], "label": [b"a", b"b"]}))),
        ("nested.parquet", parquet(pd.DataFrame({"text": [["a"], ["b"]], "label": [{"x": 1}, {"x": 2}]}))),
        ("times.parquet", parquet(pd.DataFrame({"text": pd.to_datetime(["2020-01-01", None]), "label": pd.to_timedelta([1, 2])}))),
        ("nulls.parquet", parquet(pd.DataFrame({"text": [None, None], "label": [None, None]}))),
        ("inf.parquet", parquet(pd.DataFrame({"text": ["a", "b", "c"], "label": [np.inf, -np.inf, np.nan]}))),
        ("large.parquet", parquet(pd.DataFrame({"text": ["a", "b", "c"], "label": [1e300, 2**60, -(2**62)]}))),
    ]  # fmt: skip


def _whole_formats() -> list[Content]:
    """One file of each format, and of each text format gzipped."""
    found = [(slug, catalogue.catalogue()[slug], make()) for slug, make in SAMPLES.items()]
    plain = [(f"{slug}{one.endings[0]}", content) for slug, one, content in found]
    packed = [
        (f"{slug}{one.endings[0]}.gz", gzip.compress(content)) for slug, one, content in found if one.compressible
    ]
    answer = {"custom_id": "a", "response": {"body": {"data": [{"embedding": "AACAPwAAAEA="}, {"embedding": [1, 2]}]}}}
    return [*plain, *packed, ("openai.jsonl", json.dumps(answer).encode() * 2), ("loose.txt", b"12 3 4\n. . 1 2 3\n")]


WHOLE = (*_whole_formats(), *_whole_arrays(), *_whole_tables())
ENDINGS = catalogue.endings("array", "table", "vectors", "texts", "nothing")


@st.composite
def damaged(draw: st.DrawFn) -> Content:
    """One of `WHOLE`: intact, truncated, or with bytes changed, inserted or removed, with its own or another suffix."""
    name, content = WHOLE[draw(st.integers(0, len(WHOLE) - 1))]
    if draw(st.booleans()):
        ending = draw(st.sampled_from((*ENDINGS, ".csv.gz", ".txt.gz", "")))
        name = name if draw(st.booleans()) else name.split(".")[0] + ending
    kind = draw(st.sampled_from(("none", "cut", "change", "insert", "remove")))
    place = draw(st.integers(0, max(0, len(content) - 1)))
    if kind == "cut":
        content = content[:place]
    elif kind == "change":
        content = content[:place] + draw(st.binary(min_size=1, max_size=8)) + content[place + 8 :]
    elif kind == "insert":
        content = content[:place] + draw(st.binary(min_size=1, max_size=300)) + content[place:]
    elif kind == "remove":
        content = content[:place] + content[place + draw(st.integers(1, 64)) :]
    return name, content


columns = st.fixed_dictionaries(
    {"text": nasty.near("text"), "label": nasty.near("label", "second", "text")},
    optional={
        "second": nasty.near("second"),
        "kind": st.sampled_from(("classification", "regression", "span", "seq2seq")),
    },
)


def fill(folder: Path) -> None:
    """Every kind of file, and other things: a directory, a loop of links, a dangling link, a named pipe, a device."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in WHOLE:
        (folder / name).write_bytes(content)
    for name, content in (("train.csv", WHOLE[-1][1]), ("validation.csv", b"a\n1\n")):
        data = folder / "data"
        data.mkdir(exist_ok=True)
        (data / name).write_bytes(content)
    (folder / "directory.csv").mkdir()
    (folder / "directory.npy").mkdir()
    (folder / "folders").mkdir()
    (folder / "folders" / "train.csv").mkdir()
    (folder / "folders" / "validation.parquet").symlink_to("nowhere")
    for name in ("loop", "loop.csv", "loop.npy"):
        (folder / name).symlink_to(folder / name)
    (folder / "gone.csv").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "queue.csv")
    os.mkfifo(folder / "queue.npy")
    with contextlib.suppress(OSError):  # a null device of our own, where the account may make one
        os.mknod(folder / "device.npy", stat.S_IFCHR | 0o644, os.makedev(1, 3))


def bomb(path: Path, rows: int, length: int, label: int = 1) -> Path:
    """A Parquet file of rows with one long text each, all the same: a few kilobytes on disk, `rows` × `length` bytes in memory."""
    indices = pyarrow.array(np.zeros(rows, dtype=np.int8))
    texts = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(["x " * (length // 2)]))
    content = pyarrow.table({"text": texts, "label": pyarrow.array(np.arange(rows, dtype=np.int8) % (label + 1))})
    pyarrow.parquet.write_table(content, path, store_schema=False, row_group_size=rows, compression="zstd")
    assert path.stat().st_size < 300_000
    return path


def check(case: tuple[Content, dict[str, str]], folder: Path) -> int:
    """Give one file to all readers of people's files; how many refused it.

    Raises:
        AssertionError: a refusal that is not one line of at most 300 characters. Any other exception is a bug of a reader.
    """
    (name, content), chosen = case
    path = folder / name
    path.write_bytes(content)
    readers: list[Callable[[], object]] = [
        lambda: arrays.read(str(path)),
        lambda: vectors.reading.array(str(path)),
        lambda: vectors.reading.read_either(str(path), skip_bad=True),
    ]
    if path.suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        readers += [lambda: own.guess_columns(own.preview(path)), lambda: _as_task(path, chosen)]
    refused = 0
    try:
        for read in readers:
            try:
                read()
            except InputError as error:
                assert len(str(error)) <= LONGEST, f"{len(str(error))} characters: {error}"
                assert str(error).isprintable(), f"not one printable line: {str(error)!r}"
                refused += 1
    finally:
        path.unlink()
    return refused


def _as_task(path: Path, chosen: dict[str, str]) -> None:
    completed = own.completed(path, OwnTask.checked(**chosen))
    task = tasks.get(tasks.OWN, completed)
    tasks.check_data(task, path)
    tasks.load(task, path)
