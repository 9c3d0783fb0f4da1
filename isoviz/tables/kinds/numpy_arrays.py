"""numpy's .npy, and .npz, a zip archive of them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.tables.arrays import mapped
from isoviz.tables.protocol import Format, Glimpse, refused, starts_with


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    major, _ = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(stream)
    if kind.hasobject:
        raise refused("it holds pickled objects, which are never loaded; save it as an array of numbers")
    return shape, fortran, kind


def _array(path: Path, _: str) -> NDArray[Any]:
    with path.open("rb") as stream:
        shape, fortran, kind = _header(stream)
        points = mapped(path, kind, stream.tell(), shape[::-1] if fortran else shape)
    return points.T if fortran else points


def _is_archive(glimpse: Glimpse) -> bool | None:
    if any(name.endswith(".npy") for name in glimpse.members):
        return True
    return None if glimpse.start.startswith(b"PK") and not glimpse.members else False


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    shapes = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as stream:
                    shapes[name.removesuffix(".npy")] = _header(stream)[0]
    return shapes


def _member(path: Path, name: str) -> NDArray[Any]:
    with np.load(path, allow_pickle=False) as archive:
        points: NDArray[Any] = archive[name]
    return points


FORMATS = (
    Format("npy", "a NumPy array", (".npy",), starts_with(b"\x93NUMPY"), vectors="a 2-D array, mapped if large", array=_array),
    Format(
        "npz", "an archive of NumPy arrays", (".npz",), _is_archive, shapes=_shapes, array=_member,
        vectors="its only array of two axes, or the one you name",
    ),
)  # fmt: skip
