"""HDF5: data sets by their paths in the file. Links to other files are never followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isoviz.tables.arrays import mapped
from isoviz.tables.protocol import Format, refused, starts_with


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    import h5py

    shapes: dict[str, tuple[int, ...]] = {}

    def visit(name: str, item: Any) -> None:  # of hard links only
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and item.shape:
            shapes[name] = tuple(item.shape)

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return shapes


def _array(path: Path, name: str) -> NDArray[Any]:
    import h5py

    with h5py.File(path, "r") as file:
        data = file[name]
        if data.external or data.is_virtual:
            raise refused(f"'{path.name}' keeps '{name}' in another file; copy the numbers into one file")
        offset, stored = data.id.get_offset(), data.id.get_storage_size()
        if offset is not None and stored == data.size * data.dtype.itemsize:
            return mapped(path, data.dtype, offset, tuple(data.shape))
        points: NDArray[Any] = data[()]
        return points


FORMATS = Format(
    "hdf5", "an HDF5 file", (".h5", ".hdf5", ".h5ad"), starts_with(b"\x89HDF\r\n\x1a\n"), shapes=_shapes, array=_array,
    packages=("h5py",), vectors="its only data set of two axes, or the one you name by its path (`obsm/X_pca`)",
)  # fmt: skip
