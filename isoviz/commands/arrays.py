"""Arrays that a user hands over as a file: .npy, .npz or .safetensors with one array (points, dimensions). Data only."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary, limits
from isoviz.errors import InputError, listed

MAP_ABOVE = 64 * 2**20
"""Bytes above which a .npy file is mapped into memory instead of read."""
FORMATS = ".npy, or .npz or .safetensors with one array"


def read(name: str) -> NDArray[Any]:
    """The array of a file, (n, d) with n, d >= 1; possibly a read-only map of the file. Its values are not looked at.

    Raises:
        InputError: no such file, another format, several arrays, pickled objects, or another shape.
    """
    path = boundary.file(name, "embeddings")
    with boundary.parsing(f"'{name}' cannot be read", "embeddings"), open(path, "rb") as stream:
        start = stream.read(8)
    limits.check(path.name, expanded=_promised(path) if start.startswith(b"PK") else path.stat().st_size)
    if start.startswith(b"\x93NUMPY"):
        points = _read_npy(path)
    elif start.startswith(b"PK"):
        points = _read_npz(path)
    elif path.suffix == ".safetensors":
        points = _read_safetensors(path)
    else:
        what = "is empty" if not start else "is no array file"
        raise _refused(f"'{name}' {what} (allowed: {FORMATS})")
    if points.ndim != 2:
        raise _refused(f"'{name}' has the shape {points.shape}; expected (points, dimensions)")
    if 0 in points.shape:
        raise _refused(f"'{name}' holds no points: its shape is {points.shape}")
    return points


def _promised(path: Path) -> int:
    """Bytes that the members of a zip archive take, as its directory says; 0 for what is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError):
        return 0


def _read_npy(path: Path) -> NDArray[Any]:
    with _parsing(path, ".npy"):
        _require_whole(path)
        return np.load(path, mmap_mode="r" if path.stat().st_size > MAP_ABOVE else None, allow_pickle=False)


def _require_whole(path: Path) -> None:
    """A header may promise more than any memory holds, and numpy would ask for it before it reads."""
    with open(path, "rb") as stream:
        major, _ = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        present = path.stat().st_size - stream.tell()
    promised = math.prod(shape) * dtype.itemsize
    if promised > present and not dtype.hasobject:
        raise _refused(f"'{path}' is cut off: its header promises {promised:,} bytes of numbers, {present:,} are there")


def _read_npz(path: Path) -> NDArray[Any]:
    with _parsing(path, ".npz"), np.load(path, allow_pickle=False) as found:
        _require_one(path, list(found.files))
        points = found[found.files[0]]
        if not isinstance(points, np.ndarray):
            raise _refused(f"'{path}' holds '{found.files[0]}', which is no array")
        return points


def _read_safetensors(path: Path) -> NDArray[Any]:
    from safetensors import safe_open

    with _parsing(path, ".safetensors"):
        with safe_open(path, framework="numpy") as found:
            names = list(found.keys())
            _require_one(path, names)
            points: NDArray[Any]
            if found.get_slice(names[0]).get_dtype() != "BF16":
                points = found.get_tensor(names[0])
                return points
        with safe_open(path, framework="pt") as found:  # numpy has no bfloat16
            points = found.get_tensor(names[0]).float().numpy()
            return points


def _require_one(path: Path, names: list[str]) -> None:
    if len(names) != 1:
        raise _refused(f"'{path}' holds {len(names)} arrays ({listed(names, 80) or 'none'}); keep the one to measure")


@contextmanager
def _parsing(path: Path, kind: str) -> Iterator[None]:
    try:
        with boundary.parsing(f"'{path}' cannot be read as {kind}", "embeddings"):
            yield
    except InputError as error:
        if "allow_pickle" not in str(error):
            raise
        why = "it holds pickled objects, which are never loaded; save it as an array of numbers"
        raise _refused(f"'{path}' cannot be read as {kind}: {why}") from None


def _refused(message: str) -> InputError:
    return InputError(f"embeddings: {message}", field="embeddings")
