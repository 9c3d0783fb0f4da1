"""The contract of a study: what is computed at which scale, and a result that is plain data.

A result holds everything a page, a plot script or a reader of the JSON needs to draw it beside the printed numbers; nothing
in it knows a plotting library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from platform import python_version
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from isoviz import __version__
from isoviz.errors import unknown_name
from isoviz.methods.protocol import Paper

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null", allow_inf_nan=False)


class Axis(_Data):
    """One axis: its label with the unit or symbol, whether it is logarithmic, and its limits where they are meant."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


class Series(_Data):
    """One line, all lists of the same length.

    Attributes:
        name: as in the legend.
        role: "measured", "expected" (a formula, drawn thin), or "added" (not in the paper).
        group: series of one group share a colour; a formula has the group of what it predicts.
        x, y: the points, in data units.
        low, high: ends of the spread around y, and what they are in `spread`.
    """

    name: str
    role: Literal["measured", "expected", "added"]
    group: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    spread: str = ""

    @model_validator(mode="after")
    def _same_length(self) -> Series:
        lengths = {len(values) for values in (self.x, self.y, self.low, self.high) if values is not None}
        if len(lengths) != 1:
            raise ValueError(f"x, y, low and high of '{self.name}' must be equally long, got {sorted(lengths)}")
        return self


class Reference(_Data):
    """A straight line across the figure at a value of one axis."""

    label: str
    axis: Literal["x", "y"]
    value: float


class Published(_Data):
    """A printed number beside ours; `reproduced` is None where we cannot compute it."""

    what: str
    published: float
    reproduced: float | None
    where: str


class Provenance(_Data):
    """What is needed to compute the result again."""

    study: str
    scale: str
    seed: int
    config: dict[str, Any]
    versions: dict[str, str]
    finished: str = Field(description="UTC, ISO 8601")
    seconds: float


class Result(_Data):
    """What a study found; `model_dump_json` is its file format."""

    title: str
    x_axis: Axis
    y_axis: Axis
    series: list[Series]
    references: list[Reference] = []
    published: list[Published] = []
    notes: list[str] = []
    provenance: Provenance


class Study:
    """One table or figure of a paper. Subclasses set the class attributes and implement `run`.

    Class attributes:
        slug: name on the command line and in URLs.
        title: name on screen.
        paper: where it comes from.
        place: which figure or table of the paper.
        kind: "figure" or "table".
        summary: one or two plain sentences on what is shown.
        open_points: what the paper leaves open or contradicts, a sentence each.
        scales: "quick" and "full", each with a sentence on its size.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[Paper]
    place: ClassVar[str]
    kind: ClassVar[Literal["figure", "table"]]
    summary: ClassVar[str]
    open_points: ClassVar[tuple[str, ...]] = ()
    scales: ClassVar[Mapping[str, str]]

    def run(self, scale: str, progress: Progress) -> Result:
        """Compute the study at one of its scales.

        Raises:
            InputError: a scale that is not in `scales`.
        """
        raise NotImplementedError

    @classmethod
    def check_scale(cls, scale: str) -> str:
        """The scale, if the study has it."""
        if scale not in cls.scales:
            raise unknown_name(f"scale of '{cls.slug}'", scale, cls.scales, field="scale")
        return scale

    @classmethod
    def card(cls) -> dict[str, Any]:
        """What a list of studies shows of it, JSON-ready."""
        return {
            "slug": cls.slug,
            "title": cls.title,
            "paper": cls.paper.short,
            "place": cls.place,
            "kind": cls.kind,
            "summary": cls.summary,
            "open_points": list(cls.open_points),
            "scales": dict(cls.scales),
        }


def provenance(
    study: str, scale: str, seed: int, config: Mapping[str, Any], packages: Iterable[str], seconds: float
) -> Provenance:
    """The record of a computation that ends now; `packages` are the distributions its numbers depend on."""
    versions = {"isoviz": __version__, "python": python_version(), **{name: version(name) for name in packages}}
    return Provenance(
        study=study,
        scale=scale,
        seed=seed,
        config=json.loads(json.dumps(dict(config))),  # tuples become lists, as they will be when read back
        versions=versions,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 2),
    )
