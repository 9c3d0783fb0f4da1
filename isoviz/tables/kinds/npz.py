"""numpy's .npz, a zip archive of arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.tables.kinds.npy import header, refuse_objects
from isoviz.tables.protocol import Format, Glimpse


def _recognise(glimpse: Glimpse) -> bool | None:
    if any(name.endswith(".npy") for name in glimpse.members):
        return True
    return None if glimpse.start.startswith(b"PK") and not glimpse.members else False


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): _header(archive, name)[0] for name in names}


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with archive.open(name) as stream:
        return header(stream)


def _array(path: Path, name: str) -> NDArray[Any]:
    with zipfile.ZipFile(path) as archive:
        refuse_objects(path, _header(archive, f"{name}.npy")[2])
    with np.load(path, allow_pickle=False) as archive:
        points: NDArray[Any] = archive[name]
    return points


FORMATS = Format(
    "npz", "an archive of NumPy arrays", (".npz",), _recognise, shapes=_shapes, array=_array,
    vectors="its only array of two axes, or the one you name",
)  # fmt: skip
