"""One small file of each format, all with the same vectors."""

from __future__ import annotations

import io
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from safetensors.numpy import save

from isoviz.vectors.embedded import embedded
from isoviz.vectors.reading import from_points

POINTS = np.random.default_rng(0).normal(size=(12, 3)).round(4).astype(np.float32)
WORDS = [f"w{row}" for row in range(12)]
TABLE = pa.table({"id": WORDS, "v": pa.array(POINTS.tolist(), pa.list_(pa.float32()))})


def through_file(ending: str, write: Callable[[str], Any]) -> bytes:
    """What a writer that takes a path writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{ending}"
        write(str(path))
        return path.read_bytes()


def _buffer(write: Callable[[io.BytesIO], Any]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _hdf5(path: str) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["group/points"] = POINTS
        file["ids"] = np.arange(12)


def _faiss(path: str) -> None:
    import faiss

    index = faiss.IndexFlatIP(3)
    index.add(POINTS)
    faiss.write_index(index, path)


def _torch(path: str) -> None:
    import torch

    torch.save({"points": torch.tensor(POINTS), "epoch": 3}, path)


def lines(separator: str = " ", words: bool = True) -> str:
    rows = [separator.join(f"{value:.4f}" for value in row) for row in POINTS]
    return "\n".join(f"{word}{separator}{row}" if words else row for word, row in zip(WORDS, rows, strict=True)) + "\n"


def _separated(separator: str) -> bytes:
    return (separator.join(("id", "x0", "x1", "x2")) + "\n" + lines(separator)).encode()


def _page() -> bytes:
    inside = json.dumps(embedded(from_points(POINTS)))
    return f'<script type="application/json" id="inside">{inside}</script>'.encode()


def _vecs(kind: str, points: np.ndarray) -> bytes:
    return b"".join(struct.pack("<i", 3) + row.astype(kind).tobytes() for row in points)


def _bin(kind: str, points: np.ndarray) -> bytes:
    return struct.pack("<ii", *points.shape) + points.astype(kind).tobytes()


BYTES = np.arange(36).reshape(12, 3)
"""The vectors of formats that hold small whole numbers."""
SAMPLES: dict[str, Callable[[], bytes]] = {
    "npy": lambda: _buffer(lambda stream: np.save(stream, POINTS)),
    "npz": lambda: _buffer(lambda stream: np.savez(stream, points=POINTS, ids=np.arange(12))),
    "safetensors": lambda: save({"points": POINTS}),
    "parquet": lambda: _buffer(lambda stream: pa.parquet.write_table(TABLE, stream)),
    "arrow": lambda: through_file(".arrow", lambda path: pa.feather.write_feather(TABLE, path)),
    "csv": lambda: _separated(","),
    "tsv": lambda: _separated("\t"),
    "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()).encode(),
    "json": lambda: json.dumps(dict(zip(WORDS, POINTS.tolist(), strict=True))).encode(),
    "words": lambda: lines().encode(),
    "word2vec": lambda: (
        b"12 3\n" + b"".join(w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(WORDS, POINTS, strict=True))
    ),
    "hdf5": lambda: through_file(".h5", _hdf5),
    "faiss": lambda: through_file(".faiss", _faiss),
    "torch": lambda: through_file(".pt", _torch),
    "page": _page,
    "fvecs": lambda: _vecs("<f4", POINTS),
    "bvecs": lambda: _vecs("u1", BYTES),
    "ivecs": lambda: _vecs("<i4", BYTES),
    "fbin": lambda: _bin("<f4", POINTS),
    "u8bin": lambda: _bin("u1", BYTES),
    "i8bin": lambda: _bin("i1", BYTES),
}
"""By the format's slug. A format that is not here fails `test_formats.py`."""
