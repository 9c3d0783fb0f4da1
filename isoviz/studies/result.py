"""The result of a study as plain data: figures of panels, tables, the printed numbers beside ours, and the provenance.

A result holds everything a page, a plot script or a reader of the JSON needs to draw it beside the printed numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from platform import python_version
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from isoviz import __version__


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null", allow_inf_nan=False)


class Panel(_Data):
    """One pair of axes.

    Attributes:
        title: what stands over it; "" where the figure's own title says all.
        plot: a plotly figure as JSON, its `data` and `layout`; see `isoviz.studies.figures`.
    """

    title: str = ""
    plot: dict[str, Any]

    @property
    def traces(self) -> list[dict[str, Any]]:
        """What is drawn from numbers."""
        return [trace for trace in self.plot["data"] if trace.get("x") != [None]]

    @property
    def references(self) -> list[str]:
        """The labels of the straight lines across the panel."""
        return [trace["name"] for trace in self.plot["data"] if trace.get("x") == [None]]


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
