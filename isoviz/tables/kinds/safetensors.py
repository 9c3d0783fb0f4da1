"""safetensors: named arrays, one of which is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isoviz.tables import arrays
from isoviz.tables.protocol import Format, Glimpse


def _recognise(glimpse: Glimpse) -> bool:
    return glimpse.start[8:9] == b"{" and int.from_bytes(glimpse.start[:8], "little") < 2**32 and glimpse.text is None


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as archive:
        return {name: tuple(archive.get_slice(name).get_shape()) for name in list(archive.keys())}


def _array(path: Path, name: str) -> NDArray[Any]:
    from safetensors import safe_open

    points: NDArray[Any]
    with safe_open(path, framework="numpy") as archive:
        kind = archive.get_slice(name).get_dtype()
        if kind in arrays.TENSOR_TYPES and path.stat().st_size > arrays.MAP_ABOVE:
            return arrays.mapped_tensor(path, name)
        if kind != "BF16":
            points = archive.get_tensor(name)
            return points
    with safe_open(path, framework="pt") as archive:  # numpy has no bfloat16
        points = archive.get_tensor(name).float().numpy()
        return points


FORMATS = Format(
    "safetensors", "a safetensors file", (".safetensors",), _recognise, shapes=_shapes, array=_array,
    vectors="its only array of two axes, or the one you name; mapped if large; bfloat16 too",
)  # fmt: skip
