"""numpy's .npy."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.tables.arrays import mapped
from isoviz.tables.protocol import Format, refused, starts_with


def header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran's order, and type."""
    major, _ = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    return read(stream)


def refuse_objects(path: Path, kind: np.dtype[Any]) -> None:
    """Raise `DataError` for an array of pickled objects."""
    if kind.hasobject:
        raise refused(f"'{path.name}' holds pickled objects, which are never loaded; save it as an array of numbers")


def _array(path: Path, _: str) -> NDArray[Any]:
    with path.open("rb") as stream:
        shape, fortran, kind = header(stream)
        refuse_objects(path, kind)
        points = mapped(path, kind, stream.tell(), shape[::-1] if fortran else shape)
    return points.T if fortran else points


FORMATS = Format(
    "npy", "a NumPy array", (".npy",), starts_with(b"\x93NUMPY"), vectors="a 2-D array, mapped if large", array=_array
)
