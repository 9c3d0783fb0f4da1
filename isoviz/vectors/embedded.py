"""A set of vectors inside a page without a server (`isoviz page`, or a page of the app saved as one), and out of it again."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary
from isoviz.errors import InputError, shortened
from isoviz.vectors.sets import VectorSet

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS: Final = 20_000
MOST_DIMENSIONS: Final = 4_096
MOST_NUMBERS: Final = 20_000 * 1_024
"""Largest set that the page takes."""
START: Final = '<script type="application/json" id="inside">'
"""In the page, ahead of what `embedded` returns."""
_COLUMNS: Final = ("id", "label", "text")


def embedded(vectors: VectorSet, *, texts: bool = True, field: str = "vectors") -> dict[str, Any]:
    """`name`, the points as a .npy file in base64 (`npy`), and `columns` by name, with or without the texts.

    Raises:
        InputError: more vectors than the page takes.
    """
    rows = min(MOST_ROWS, MOST_NUMBERS // min(vectors.d, MOST_DIMENSIONS))
    if vectors.n > rows or vectors.d > MOST_DIMENSIONS:
        most, got = f"{rows:,} × {min(vectors.d, MOST_DIMENSIONS):,}", f"{vectors.n:,} × {vectors.d:,}"
        raise InputError(f"{field}: a page takes up to {most} numbers (got {got})", field=field)
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(vectors.points))
    kept = [name for name in _COLUMNS if name in vectors.columns and (texts or name != "text")]
    columns = {name: vectors.columns[name].map(str, na_action="ignore").fillna("").tolist() for name in kept}
    return {"name": vectors.name, "npy": base64.b64encode(stream.getvalue()).decode(), "columns": columns}


def reopened(path: str | Path, field: str = "vectors") -> tuple[NDArray[Any], pd.DataFrame | None, str]:
    """The points and columns inside a page, and the address that restores a saved page. Raises `InputError` if it has no points."""
    import pandas as pd

    _, _, rest = boundary.file(str(path), field).read_text("utf-8", errors="replace").partition(START)
    problem = "is not a page with vectors inside"
    try:
        inside = json.loads(rest.partition("</script>")[0])
        address = str(inside.get("address", ""))
        if address:
            problem = f"was saved without its vectors; {shortened(address, 2_000)} restores it in the app"
        points = np.load(io.BytesIO(base64.b64decode(inside["npy"], validate=True)), allow_pickle=False)
        columns = pd.DataFrame(inside["columns"], dtype=str)
    except (ValueError, TypeError, KeyError, EOFError, AttributeError):
        name = shortened(Path(path).name)
        raise InputError(f"{field}: '{name}' {problem}", field=field) from None
    return points, columns if len(columns.columns) else None, address
