"""Arrays of any shape and name in a safetensors file, written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays. Raises `OSError`."""
    from safetensors.numpy import save

    partial = path.with_name(f".writing-{path.name}")
    try:
        partial.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the store may need the space to report the error
        raise


def load(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file. Raises `OSError`, or `ValueError` if it is damaged."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path.name} cannot be read ({error})") from None
