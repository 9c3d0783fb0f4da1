"""Arrays that a user hands over as a file: .npy, .npz or .safetensors with one array (points, dimensions). Data only."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import limits
from isoviz.errors import InputError

MAP_ABOVE = 64 * 2**20
"""Bytes above which a .npy file is mapped into memory instead of read."""
FORMATS = ".npy, or .npz or .safetensors with one array"


def read(name: str) -> NDArray[Any]:
    """The array of a file, (n, d) with n, d >= 1; possibly a read-only map of the file. Its values are not looked at.

    Raises:
        InputError: no such file, another format, several arrays, pickled objects, or another shape.
    """
    path = Path(name).expanduser()
    if not path.is_file():
        raise _refused(f"no file '{name}'")
    with open(path, "rb") as stream:
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
    try:
        return np.load(path, mmap_mode="r" if path.stat().st_size > MAP_ABOVE else None, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise _refused(f"'{path}' cannot be read as .npy: {_reason(error)}") from None


def _read_npz(path: Path) -> NDArray[Any]:
    try:
        with np.load(path, allow_pickle=False) as found:
            _require_one(path, list(found.files))
            points: NDArray[Any] = found[found.files[0]]
            return points
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise _refused(f"'{path}' cannot be read as .npz: {_reason(error)}") from None


def _read_safetensors(path: Path) -> NDArray[Any]:
    from safetensors import SafetensorError, safe_open

    try:
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
    except (SafetensorError, OSError, TypeError) as error:
        raise _refused(f"'{path}' cannot be read as .safetensors: {_reason(error)}") from None


def _require_one(path: Path, names: list[str]) -> None:
    if len(names) != 1:
        listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise _refused(f"'{path}' holds {len(names)} arrays ({listed or 'none'}); keep the one to measure")


def _reason(error: Exception) -> str:
    text = str(error).strip()
    if "allow_pickle" in text:
        return "it holds pickled objects, which are never loaded; save it as an array of numbers"
    return text.splitlines()[0] if text else type(error).__name__


def _refused(message: str) -> InputError:
    return InputError(f"embeddings: {message}", field="embeddings")
