"""Arrays in a safetensors file with a checksum of their content: a damaged file is reported, not shown or trained on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PARTIAL: Final = ".writing-"
"""Prefix of a file that is being written."""
_CHECKSUM: Final = "sha256"


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of any shape and name, atomically. Raises `OSError`."""
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    partial = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
    try:
        partial.write_bytes(save(whole, {_CHECKSUM: _checksum(whole)}))
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the store may need the space to report the error
        raise


def load(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file. Raises `OSError`, or `ValueError` if its content has changed. Older versions wrote no checksum."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            expected = (file.metadata() or {}).get(_CHECKSUM)
    except SafetensorError as error:
        raise ValueError(f"{path.name} cannot be read ({error})") from None
    if expected is not None and expected != _checksum(arrays):
        raise ValueError(f"{path.name} does not match its checksum")
    return arrays


def damaged(folder: Path) -> list[str]:
    """What is wrong with the files of arrays in a folder, one sentence per damaged file."""
    problems = []
    for path in sorted(folder.glob("*.safetensors")):
        try:
            load(path)
        except (OSError, ValueError) as error:
            problems.append(f"the arrays of {path.stem} are damaged: {error}")
    return problems


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
