"""Vectors of nearest-neighbour benchmarks: .fvecs and the like (each row begins with its dimension), .fbin and the like (one header)."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.tables.arrays import mapped
from isoviz.tables.protocol import Format, by_ending, refused


def _rows(kind: str, path: Path, _: str) -> NDArray[Any]:
    d = int(np.fromfile(path, "<i4", count=1)[0]) if path.stat().st_size >= 4 else 0
    width = 4 + d * np.dtype(kind).itemsize
    if not 0 < d < 2**20 or path.stat().st_size % width:
        raise refused(f"'{path.name}' is damaged or of another format: its rows do not all have {d:,} dimensions")
    rows = mapped(path, np.dtype([("d", "<i4"), ("vector", kind, (d,))]), 0, (path.stat().st_size // width,))
    if (rows["d"] != d).any():
        raise refused(f"'{path.name}' has rows of unequal length; the first has {d:,} dimensions")
    points: NDArray[Any] = rows["vector"]
    return points


def _matrix(kind: str, path: Path, _: str) -> NDArray[Any]:
    n, d = map(int, np.fromfile(path, "<u4", count=2)) if path.stat().st_size >= 8 else (0, 0)
    return mapped(path, kind, 8, (n, d))


FORMATS = (
    *(
        Format(slug, f"a .{slug} file", (f".{slug}",), by_ending, vectors=what, array=functools.partial(_rows, kind))
        for slug, kind, what in (
            ("fvecs", "<f4", "rows of float32, each after its dimension; mapped if large"),
            ("bvecs", "|u1", "the same of bytes"),
            ("ivecs", "<i4", "the same of int32"),
        )
    ),
    *(
        Format(slug, f"a .{slug} file", (f".{slug}",), by_ending, vectors=what, array=functools.partial(_matrix, kind))
        for slug, kind, what in (
            ("fbin", "<f4", "n, d, and n × d numbers in float32; mapped if large"),
            ("u8bin", "|u1", "the same of bytes"),
            ("i8bin", "|i1", "the same of int8"),
        )
    ),
)
