"""Array files from users: .npy, .npz or .safetensors with one array (points, dimensions). Data only."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary
from isoviz.errors import InputError, listed
from isoviz.metrics.cloud import blocks

MAP_ABOVE = 64 * 2**20
"""Bytes above which a .npy or .safetensors file is mapped into memory instead of read."""
FORMATS = ".npy, or .npz or .safetensors with one array"
SUFFIXES = (".npy", ".npz", ".safetensors")
LARGEST = 1e100
"""Largest magnitude of a number; squares and products of larger ones overflow."""

_BLOCK = 16 * 2**20
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1"}
"""Types of a safetensors file that numpy supports."""


def read(name: str | Path, array: str | None = None, field: str = "embeddings") -> NDArray[Any]:
    """The array of a file, (n, d) with n, d >= 1; possibly a read-only memory map. Its values are not checked.

    Args:
        name: the file.
        array: which array of an .npz or .safetensors file; None: the only one.
        field: of the form or the command line that named the file.

    Raises:
        InputError: no such file, another format, several arrays, pickled objects, or another shape.
    """
    path = boundary.file(name, field)
    with boundary.parsing(f"'{name}' cannot be read", field), open(path, "rb") as stream:
        start = stream.read(8)
    if start.startswith(b"\x93NUMPY"):
        points = _read_npy(path, field)
    elif start.startswith(b"PK"):
        points = _read_npz(path, array, field)
    elif path.suffix == ".safetensors":
        points = _read_safetensors(path, array, field)
    else:
        what = "is empty" if not start else "is not an array file"
        raise _refused(f"'{name}' {what} (allowed: {FORMATS})", field)
    if points.ndim != 2:
        raise _refused(f"'{name}' has the shape {points.shape}; expected (points, dimensions)", field)
    if 0 in points.shape:
        raise _refused(f"'{name}' contains no points: its shape is {points.shape}", field)
    return points


def _read_npy(path: Path, field: str) -> NDArray[Any]:
    with _parsing(path, ".npy", field):
        _require_whole(path, field)
        return np.load(path, mmap_mode="r" if path.stat().st_size > MAP_ABOVE else None, allow_pickle=False)


def _require_whole(path: Path, field: str) -> None:
    """Check the file's size first: numpy allocates what a header declares before it reads."""
    with open(path, "rb") as stream:
        major, _ = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        present = path.stat().st_size - stream.tell()
    promised = math.prod(shape) * dtype.itemsize
    if promised > present and not dtype.hasobject:
        problem = f"its header declares {promised:,} bytes of numbers, the file has {present:,}"
        raise _refused(f"'{path}' is cut off: {problem}", field)


def _read_npz(path: Path, array: str | None, field: str) -> NDArray[Any]:
    with _parsing(path, ".npz", field), np.load(path, allow_pickle=False) as archive:
        name = _one_of(path, list(archive.files), array, field)
        points = archive[name]
        if not isinstance(points, np.ndarray):
            raise _refused(f"'{path}' holds '{name}', which is not an array", field)
        return points


def _read_safetensors(path: Path, array: str | None, field: str) -> NDArray[Any]:
    from safetensors import safe_open

    with _parsing(path, ".safetensors", field):
        with safe_open(path, framework="numpy") as archive:
            name = _one_of(path, list(archive.keys()), array, field)
            points: NDArray[Any]
            dtype = archive.get_slice(name).get_dtype()
            if dtype in _TYPES and path.stat().st_size > MAP_ABOVE:
                return mapped_tensor(path, name)
            if dtype != "BF16":
                points = archive.get_tensor(name)
                return points
        with safe_open(path, framework="pt") as archive:  # numpy has no bfloat16
            points = archive.get_tensor(name).float().numpy()
            return points


def mapped_tensor(path: Path, name: str) -> NDArray[Any]:
    """A tensor as a read-only memory map of a safetensors file that the library has validated."""
    with open(path, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        entry = json.loads(stream.read(size))[name]
    start, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if start == end:  # an empty file cannot be mapped
        return np.empty(shape, dtype=_TYPES[entry["dtype"]])
    return np.memmap(path, dtype=_TYPES[entry["dtype"]], mode="r", offset=8 + size + start, shape=shape)


def check_finite(points: NDArray[Any], field: str, before: int = 0) -> None:
    """`InputError` for the first entry that is not finite or above `LARGEST`, with its row and column counted from 1.

    Args:
        before: number of rows of the file before these.
    """
    if points.dtype.kind != "f":
        return
    rows = max(1, _BLOCK // (points.shape[1] * points.dtype.itemsize))
    wide = points.dtype.itemsize > 4
    for start, block in blocks(points, rows):
        bad = np.argwhere(~(np.abs(block) <= LARGEST) if wide else ~np.isfinite(block))
        if len(bad):
            row, column = int(bad[0][0]), int(bad[0][1])
            value = block[row, column]
            shown = "NaN" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:.3g}, above {LARGEST:.0e}"
            half_overflow = points.dtype == np.float16 and shown == "infinite"
            hint = "; float16 ends at 65,504: save them as float32" if half_overflow else ""
            raise InputError(
                f"{field}: row {before + start + row + 1}, dimension {column + 1}: the number is {shown}{hint}",
                field=field,
            )


def _one_of(path: Path, names: list[str], requested: str | None, field: str) -> str:
    if requested is not None:
        if requested not in names:
            raise _refused(f"'{path}' contains no array '{requested}' (it has: {listed(names, 80) or 'none'})", field)
        return requested
    if len(names) != 1:
        raise _refused(
            f"'{path}' holds {len(names)} arrays ({listed(names, 80) or 'none'}); name the one to read", field
        )
    return names[0]


@contextmanager
def _parsing(path: Path, kind: str, field: str) -> Iterator[None]:
    try:
        with boundary.parsing(f"'{path}' cannot be read as {kind}", field):
            yield
    except InputError as error:
        if "allow_pickle" not in str(error):
            raise
        reason = "it holds pickled objects, which are never loaded; save it as an array of numbers"
        raise _refused(f"'{path}' cannot be read as {kind}: {reason}", field) from None


def _refused(message: str, field: str) -> InputError:
    return InputError(f"{field}: {message}", field=field)
