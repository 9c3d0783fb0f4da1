"""The contract of a study: what is computed at which scale, and what of it a user may choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from isoviz.errors import InputError, unknown_name
from isoviz.methods.protocol import Paper
from isoviz.studies.inputs import Inputs
from isoviz.studies.result import Result

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""

OWN = Inputs()
"""Nothing chosen: the study's own models and tasks."""


class Study:
    """Tables and figures of a paper that come from one computation. Subclasses set the class attributes and implement `run`.

    Class attributes:
        slug: name on the command line and in URLs.
        title: name on screen.
        paper: where it comes from.
        place: which figures or tables of the paper.
        kind: "figure" or "table".
        summary: one or two plain sentences on what is shown.
        open_points: what the paper leaves open or contradicts, a sentence each.
        scales: "quick" and "full", each with a sentence on its size.
        takes: which options a user may set: "model", "tasks", "data"; none where nothing but a scale can be chosen.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[Paper]
    place: ClassVar[str]
    kind: ClassVar[Literal["figure", "table"]]
    summary: ClassVar[str]
    open_points: ClassVar[tuple[str, ...]] = ()
    scales: ClassVar[Mapping[str, str]]
    takes: ClassVar[tuple[str, ...]] = ()

    def run(self, scale: str, progress: Progress, inputs: Inputs = OWN) -> Result:
        """Compute the study at one of its scales, with the user's models and tasks in the place of its own.

        Raises:
            InputError: a scale that is not in `scales`, or an input that is not in `takes` or cannot serve.
        """
        raise NotImplementedError

    @classmethod
    def check_scale(cls, scale: str) -> str:
        """The scale, if the study has it."""
        if scale not in cls.scales:
            raise unknown_name(f"scale of '{cls.slug}'", scale, cls.scales, field="scale")
        return scale

    @classmethod
    def check_inputs(cls, inputs: Inputs) -> Inputs:
        """The inputs, if the study takes them."""
        for name, given in inputs.given().items():
            if given and name not in cls.takes:
                allowed = f"it takes: {', '.join(cls.takes)}" if cls.takes else "it makes its own points"
                raise InputError(f"{name}: '{cls.slug}' does not take this ({allowed})", field=name)
        return inputs

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
            "takes": list(cls.takes),
        }
