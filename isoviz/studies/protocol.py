"""The contract of a study: its place in a paper, its scales, and the user's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

from isoviz.errors import InputError, unknown_name
from isoviz.methods.protocol import Paper
from isoviz.studies.inputs import Inputs
from isoviz.studies.result import Outcome, Result, Verdict

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the finished share, 0 to 1, and the current activity."""

OWN = Inputs()
"""No user inputs: the study's own models and tasks."""

Judgement: TypeAlias = tuple[Outcome, str]
"""An outcome, and one sentence with its numbers."""


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what decides whether our numbers bear it out.

    Attributes:
        sentence: the claim in our words, in the present tense.
        judge: returns the judgement on the study's evidence: the `Result` of a computed study, or the
            `isoviz.studies.evidence.Evidence` of a trained one.
        about_performance: the claim compares scores, so runs that learned nothing cannot decide it.
    """

    sentence: str
    judge: Callable[[Any], Judgement]
    about_performance: bool = False

    def verdict(self, evidence: Any) -> Verdict:
        """The claim with what the evidence says of it."""
        outcome, sentence = self.judge(evidence)
        return Verdict(claim=self.sentence, outcome=outcome, sentence=sentence)


class Study:
    """One or several figures and tables of a paper that come from one computation.

    Subclass `ComputedStudy` (one computation, then the result) or `isoviz.studies.trained.TrainedStudy` (runs of the store, and
    a picture of them), and set the class attributes.

    Class attributes:
        slug: name on the command line and in URLs.
        title: name on screen.
        paper: source.
        place: figures or tables of the paper.
        kind: "figure" or "table".
        summary: one or two plain sentences on what is shown.
        open_points: sentences on what the paper leaves open or contradicts.
        claims: the paper's claims on this figure or table.
        scales: "quick" and "full", each with a sentence on its size.
        takes: options that a user may set (fields of `Inputs`); empty if only the scale can be chosen.
        parts: of a study that computes several places at once: a name for each, and which place it is. Any of these names runs it.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[Paper]
    place: ClassVar[str]
    kind: ClassVar[Literal["figure", "table"]]
    summary: ClassVar[str]
    open_points: ClassVar[tuple[str, ...]] = ()
    claims: ClassVar[tuple[Claim, ...]] = ()
    scales: ClassVar[Mapping[str, str]]
    takes: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def check_scale(cls, scale: str) -> str:
        """The scale, if the study has it."""
        if scale not in cls.scales:
            raise unknown_name(f"scale of '{cls.slug}'", scale, cls.scales, field="scale")
        return scale

    @classmethod
    def check_inputs(cls, inputs: Inputs) -> Inputs:
        """The inputs, if the study takes them."""
        for name, requested in inputs.set_by_user().items():
            if requested and name not in cls.takes:
                allowed = f"it takes: {', '.join(cls.takes)}" if cls.takes else "it makes its own points"
                raise InputError(f"{name}: '{cls.slug}' does not take this ({allowed})", field=name)
        return inputs

    @classmethod
    def card(cls, part: str = "") -> dict[str, Any]:
        """The entry for it, or for one of its parts, in a list of studies, JSON-ready."""
        place = cls.parts[part] if part else cls.place
        return {
            "slug": part or cls.slug,
            "title": cls.title,
            "paper": cls.paper.short,
            "place": place,
            "kind": place.partition(" ")[0].lower() if part else cls.kind,
            "computed_with": cls.slug,
            "summary": cls.summary,
            "claims": [claim.sentence for claim in cls.claims],
            "open_points": list(cls.open_points),
            "scales": dict(cls.scales),
            "takes": list(cls.takes),
        }


class ComputedStudy(Study):
    """A study that trains nothing. Subclasses implement `compute`."""

    def run(self, scale: str, progress: Progress, inputs: Inputs = OWN) -> Result:
        """Compute the study at one of its scales, with the user's models and tasks instead of its own, and judge its claims.

        Raises:
            InputError: a scale that is not in `scales`, or an input that is not in `takes` or cannot serve.
        """
        result = self.compute(self.check_scale(scale), progress, self.check_inputs(inputs))
        return result.model_copy(update={"verdicts": [claim.verdict(result) for claim in self.claims]})

    def compute(self, scale: str, progress: Progress, inputs: Inputs) -> Result:
        """The result without verdicts; scale and inputs are checked."""
        raise NotImplementedError
