"""Old vectors mapped to a new encoder's: what recall of its neighbours survives."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel

from isoviz.errors import InputError
from isoviz.operations.measure import noting
from isoviz.operations.operation import STRICT, argument
from isoviz.readouts.upgrade import Map, Upgrade, upgrade
from isoviz.tables import arrays
from isoviz.vectors import reading
from isoviz.whatif.upgrade import recalls


class UpgradeRequest(BaseModel):
    """Two files of vectors of the same rows, and the map between them."""

    model_config = STRICT

    old: Annotated[str, argument("the stored vectors", "FILE")]
    new: Annotated[str, argument("the new encoder's vectors of the same rows, in the same order", "FILE")]
    map: Annotated[Map, argument("procrustes: a rotation and one factor; ridge: least squares")] = "procrustes"
    column: Annotated[str | None, argument("the vectors in the files, if they have several columns")] = None
    new_column: Annotated[str | None, argument("the vectors in --new, if they are called otherwise there")] = None


def measure(request: UpgradeRequest) -> tuple[Upgrade, dict[str, Any]]:
    """The map, and the document. Raises `InputError` like `isoviz.readouts.upgrade.upgrade`."""
    columns = {"old": request.column, "new": request.new_column or request.column}
    files = {"old": request.old, "new": request.new}
    points = {name: reading.array(file, columns[name], name) for name, file in files.items()}
    for name, array in points.items():
        if array.dtype.kind not in "fiu":
            raise InputError(f"{name}: holds {array.dtype}, not numbers", field=name)
        arrays.check_finite(array, name)
    result = upgrade(points["old"], points["new"], request.map)
    sizes = {name: {"file": file, "n": len(points[name]), "d": points[name].shape[1]} for name, file in files.items()}
    return result, {"map": request.map, **sizes, "recall10": recalls(result)}


def document(request: UpgradeRequest) -> dict[str, Any]:
    """The document, in a process of its own (`isoviz.jobs.guarded`)."""
    with noting() as notes:
        result, found = measure(request)
    return {**found, "warnings": [*result.notes, *notes]}
