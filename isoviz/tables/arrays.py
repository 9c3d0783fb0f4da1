"""Arrays (points, dimensions) from files: which one, of which shape, mapped into memory if large; and their numbers checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation
from isoviz.errors import InputError, listed, shortened
from isoviz.metrics.cloud import blocks
from isoviz.tables import catalogue
from isoviz.tables.protocol import refused

MAP_ABOVE: int = 64 * 2**20
"""Bytes above which a file's array is mapped into memory instead of read, if it lies there as it is."""
LARGEST: Final = 1e100
"""Largest magnitude of a number; squares and products of larger ones overflow."""
TENSOR_TYPES: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2"} | {
    f"I{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)
}
"""Types of a safetensors file that numpy supports."""
_BLOCK: Final = 16 * 2**20


def read(name: str | Path, array: str | None = None, field: str = "embeddings") -> NDArray[Any]:
    """The array of a file, (n, d) with n, d >= 1; possibly a read-only memory map. Its values are not checked.

    Args:
        name: the file.
        array: which array of a file with several; None: the only one of two axes.
        field: of the form or the command line that named the file.

    Raises:
        InputError: no such file, another format, several arrays, pickled objects, or another shape.
    """
    path = input_validation.file(name, field)
    shown = f"'{shortened(path.name)}'"
    with catalogue.naming_field(field):
        format = catalogue.identified(path, "array")
        assert format.array is not None
        with catalogue.parsing(path, format), catalogue.unpacked(path, format):  # which refuses a gzipped array
            shapes = {"": (0, 0)} if format.shapes is None else format.shapes(path)
            if format.shapes is None and array is not None:
                raise refused(f"{shown} is one array without a name (got '{shortened(array)}')")
            points = format.array(path, _one_of(shown, shapes, array))
        if points.ndim != 2:
            raise refused(
                f"{shown} has the shape {points.shape}; expected (points, dimensions). {_advice(points.shape)}"
            )
        if 0 in points.shape:
            raise refused(f"{shown} contains no points: its shape is {points.shape}")
        return points


def _one_of(shown: str, shapes: Mapping[str, tuple[int, ...]], requested: str | None) -> str:
    if requested is not None:
        if requested not in shapes:
            raise refused(f"{shown} contains no array '{requested}' (it has: {listed(shapes, 80) or 'none'})")
        return requested
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    one = matrices if len(shapes) > 1 else list(shapes)
    if len(one) != 1:
        raise refused(f"{shown} holds {len(shapes)} arrays ({listed(shapes, 80) or 'none'}); name the one to read")
    return one[0]


def _advice(shape: tuple[int, ...]) -> str:
    """How an array of another shape becomes one of points."""
    if len(shape) == 1:
        return f"If it is one vector, add an axis and stack several: x[None]; if d is known: x.reshape(-1, d), of {shape[0]} numbers"
    if len(shape) == 3:
        return f"Average one axis: x.mean(axis=1) gives {(shape[0], shape[2])}, or keep all tokens: x.reshape(-1, {shape[2]})"
    return "Reshape it to two axes"


def mapped(path: Path, kind: Any, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array that lies in a file as it is: a read-only memory map of a large file.

    Raises:
        DataError: the file is shorter than that.
    """
    kind, present = np.dtype(kind), path.stat().st_size - offset
    wanted = math.prod(shape) * kind.itemsize
    if min(shape, default=0) < 0 or wanted > present:
        raise refused(
            f"'{shortened(path.name)}' is cut off: it declares {wanted:,} bytes of numbers and has {present:,}"
        )
    if not wanted:  # an empty file cannot be mapped
        return np.empty(shape, dtype=kind)
    if path.stat().st_size > MAP_ABOVE:
        return np.memmap(path, dtype=kind, mode="r", offset=offset, shape=shape)
    return np.fromfile(path, dtype=kind, count=math.prod(shape), offset=offset).reshape(shape)


def mapped_tensor(path: Path, name: str) -> NDArray[Any]:
    """A tensor as a read-only memory map of a safetensors file that the library has validated."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        entry = json.loads(stream.read(size))[name]
    shape, kind = tuple(entry["shape"]), TENSOR_TYPES[entry["dtype"]]
    if 0 in shape:
        return np.empty(shape, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r", offset=8 + size + entry["data_offsets"][0], shape=shape)


def finite_rows(points: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows hold only finite numbers up to `LARGEST`."""
    if points.dtype.kind != "f":
        return np.ones(len(points), dtype=bool)
    wide = points.dtype.itemsize > 4
    rows = max(1, _BLOCK // max(1, points.shape[1] * points.dtype.itemsize))
    every = [
        ((np.abs(block) <= LARGEST) if wide else np.isfinite(block)).all(axis=1) for _, block in blocks(points, rows)
    ]
    return np.concatenate([np.ones(0, dtype=bool), *every])


def check_finite(points: NDArray[Any], field: str, before: int = 0) -> None:
    """Raise `InputError` for the first row that is not finite (`finite_rows`).

    Args:
        before: number of rows of the file before these.
    """
    good = finite_rows(points)
    if not good.all():
        row = int(good.argmin())
        raise not_finite(points[row], field, before + row)


def not_finite(point: NDArray[Any], field: str, row: int) -> InputError:
    """The error of a row, counted from 0 here and from 1 in its words, for its first such number."""
    column = int(finite_rows(point[:, None]).argmin())
    value = point[column]
    shown = "NaN" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:.3g}, above {LARGEST:.0e}"
    half_overflow = point.dtype == np.float16 and shown == "infinite"
    hint = "; float16 ends at 65,504: save them as float32" if half_overflow else ""
    return InputError.at(field, f"row {row + 1}, dimension {column + 1}: the number is {shown}{hint}")
