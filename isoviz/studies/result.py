"""The result of a study as plain data: figures of panels, tables, the printed numbers beside ours, and the provenance.

A result holds everything a page, a plot script or a reader of the JSON needs to draw it beside the printed numbers; nothing
in it knows a plotting library.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from isoviz import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

SHADES = 63
"""Steps between 0 and 1 that a recorded matrix keeps; an eye tells fewer apart."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null", allow_inf_nan=False)


class Axis(_Data):
    """One axis: its label with the unit or symbol, whether it is logarithmic, and its limits where they are meant."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


class Series(_Data):
    """One line or one row of bars, all lists of the same length.

    Attributes:
        name: as in the legend.
        role: "measured", "expected" (a formula, drawn thin), or "added" (not in the paper).
        group: series of one group share a colour; a formula has the group of what it predicts.
        x, y: the points, in data units; of bars, x is the middle (on a logarithmic axis the geometric one).
        low, high: ends of the spread around y, and what they are in `spread`.
        at_zero: y at x = 0, for which a logarithmic axis has no place: bars draw it in a separate bin.
        x_low, x_high: ends of the spread around x, of points.
        value: the parameter value of the series, such as λ, which sets its colour on a diverging scale; None for other series.
    """

    name: str
    role: Literal["measured", "expected", "added"]
    group: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    spread: str = ""
    at_zero: float | None = None
    x_low: list[float] | None = None
    x_high: list[float] | None = None
    value: float | None = None


class Matrix(_Data):
    """A symmetric matrix with entries from 0 to 1 and ones on its diagonal, kept in `SHADES` steps.

    Attributes:
        size: rows.
        cells: the part above the diagonal, row by row, a byte each (entry · `SHADES`, rounded), deflated, in base64.
    """

    size: int
    cells: str

    @classmethod
    def of(cls, matrix: ArrayLike) -> Matrix:
        """Encode an array (d, d); `ValueError` unless it is symmetric, from 0 to 1, with ones on its diagonal."""
        import numpy as np

        values = np.asarray(matrix, dtype=np.float64)
        square = values.ndim == 2 and values.shape[0] == values.shape[1]
        if not square or not (values >= 0).all() or not (values <= 1).all():  # nan is neither
            raise ValueError(f"expected a square matrix with entries from 0 to 1, got shape {values.shape}")
        if not np.allclose(values, values.T) or not np.allclose(values.diagonal(), 1.0):
            raise ValueError("expected a symmetric matrix with ones on its diagonal")
        above = np.rint(values[np.triu_indices(len(values), 1)] * SHADES).astype(np.uint8)
        return cls(size=len(values), cells=base64.b64encode(zlib.compress(above.tobytes(), 9)).decode("ascii"))

    def array(self) -> NDArray[np.float64]:
        """The whole matrix again, (d, d), to within half a step."""
        import numpy as np

        above = np.frombuffer(zlib.decompress(base64.b64decode(self.cells)), dtype=np.uint8) / SHADES
        values = np.eye(self.size)
        values[np.triu_indices(self.size, 1)] = above
        return np.maximum(values, values.T)


class Reference(_Data):
    """A straight line across a panel at a value of one axis."""

    label: str
    axis: Literal["x", "y"]
    value: float


class Panel(_Data):
    """One pair of axes.

    Attributes:
        title: what stands over it; "" where the figure's own title says all.
        kind: lines, bars or single points, drawn from `series`, or the picture of a `matrix`.
    """

    title: str = ""
    kind: Literal["lines", "bars", "points", "matrix"] = "lines"
    x_axis: Axis
    y_axis: Axis
    series: list[Series] = []
    references: list[Reference] = []
    matrix: Matrix | None = None


class Figure(_Data):
    """Panels in rows of `columns`.

    Attributes:
        name: tells the figures of a study apart in file names; "" for an only one.
        title: over all its panels.
        place: which figure of the paper it redraws.
    """

    name: str = ""
    title: str
    place: str
    columns: int = 1
    panels: list[Panel]


Row: TypeAlias = list[str | int | float | None]
"""Of a table: names, counts and other numbers; None where there is no number."""


class Table(_Data):
    """Rows of names and numbers under a header; None where there is no number."""

    title: str
    header: list[str]
    rows: list[Row]
    notes: list[str] = []

    def lines(self) -> list[list[str]]:
        """The rows as text: counts in full, other numbers in three digits, a dash where there is none."""
        return [[_cell_text(cell) for cell in row] for row in self.rows]


def _cell_text(cell: str | int | float | None) -> str:
    if cell is None:
        return "—"
    return cell if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else f"{cell:.3g}"


class Published(_Data):
    """A printed number beside ours; `reproduced` is None where we cannot compute it, `differs` what is not as in the paper."""

    what: str
    published: float
    reproduced: float | None
    where: str
    differs: str = ""


Outcome = Literal["held", "not held", "cannot tell"]


class Verdict(_Data):
    """Our verdict on one claim of the paper; `sentence` has the numbers."""

    claim: str
    outcome: Outcome
    sentence: str


class Provenance(_Data):
    """Everything needed to compute the result again; `inputs` are command-line words, without this machine's paths."""

    study: str
    scale: str
    inputs: list[str] = []
    seed: int
    config: dict[str, Any]
    versions: dict[str, str]
    finished: str = Field(description="UTC, ISO 8601")
    seconds: float


class Result(_Data):
    """The result of a study; `model_dump_json` is its file format.

    Attributes:
        published: printed numbers beside ours.
        verdicts: one for each claim that the paper makes of this figure or table.
        runs: ids of the finished runs behind it, of a study that trains; `planned` is how many there will be.
    """

    title: str
    figures: list[Figure] = []
    tables: list[Table] = []
    published: list[Published] = []
    notes: list[str] = []
    verdicts: list[Verdict] = []
    runs: list[str] = []
    planned: int = 0
    provenance: Provenance


def provenance(
    study: str,
    scale: str,
    seed: int,
    config: Mapping[str, Any],
    packages: Iterable[str],
    seconds: float,
    inputs: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
) -> Provenance:
    """The record of a computation that ends now; `packages` are the distributions its numbers depend on.

    Args:
        versions: of what computed the numbers, where that was not this process.
    """
    here = {"isoviz": __version__, "python": python_version(), **{name: version(name) for name in packages}}
    versions = dict(versions) if versions else here
    return Provenance(
        study=study,
        scale=scale,
        inputs=list(inputs),
        seed=seed,
        config=json.loads(json.dumps(dict(config))),  # tuples become lists, as they will be when read back
        versions=versions,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 2),
    )
