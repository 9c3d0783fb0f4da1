"""Lessons as TOML files: their fields, and error messages that name the field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from isoviz.errors import InputError
from isoviz.lessons.expressions import MalformedError, parse_claim, references
from isoviz.lessons.state import State

NUMBERS = (
    *("isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio", "ev_1", "effective_rank", "rankme"),
    *("alpha_req", "epps_pulley", "mean_cosine", "uniformity", "rogue_share", "massive_activation", "abs_correlation"),
    *("twonn", "local_dimension", "hubness", "reciprocity", "i1", "i2", "best_accuracy"),
)
"""The numbers that a lesson may show, ask for and claim. `best_accuracy` is the best possible accuracy on two or more clusters
(`isoviz.lessons.checking.best_accuracy`)."""

LARGEST = 100_000
"""Maximum size of a lesson's file in bytes."""

TRUE = "true."
_PLACE = re.compile(r"\{([^{}]*)\}")
_REFERENCE = re.compile(r"(?:true\.)?[a-z][a-z0-9_]*@\d+")


def _checked_claim(text: str) -> str:
    try:
        named = list(references(parse_claim(text)))
    except MalformedError as error:
        raise ValueError(str(error)) from None
    for name, _ in named:
        _known_number(name.removeprefix(TRUE))
    return text


def _known_number(name: str) -> str:
    if name not in NUMBERS:
        raise ValueError(f"unknown number '{name}' (allowed: {', '.join(NUMBERS)})")
    return name


def _known_control(name: str) -> str:
    if name not in State.model_fields:
        raise ValueError(f"unknown control '{name}' (allowed: {', '.join(State.model_fields)})")
    return name


Text = Annotated[str, Field(min_length=1)]
Number = Annotated[str, AfterValidator(_known_number)]
Test = Annotated[Text, AfterValidator(_checked_claim)]
"""A comparison of numbers in the language of `isoviz.lessons.expressions`."""
Place = tuple[str | int, ...]
"""A field, by the keys and indices that lead to it."""


class FaultyLessonError(InputError):
    """An invalid lesson file.

    Args:
        problems: one line each, with file, field and problem.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Option(_Part):
    """One option; it is the right answer if `when` holds."""

    text: Text
    when: Test


class NumberGuess(_Part):
    """A slider; the right answer is the number `of` after the step."""

    kind: Literal["number"]
    of: Number
    low: float
    high: float
    step: float = Field(gt=0)

    @model_validator(mode="after")
    def _in_order(self) -> NumberGuess:
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low:g} and {self.high:g}")
        return self


class ChoiceGuess(_Part):
    """Two to five options, exactly one of which is right."""

    kind: Literal["choice"]
    options: Annotated[tuple[Option, ...], Field(min_length=2, max_length=5)]


class Step(_Part):
    """One guess: text, question, change of the cloud, and explanation."""

    text: Text
    question: Text
    guess: Annotated[NumberGuess | ChoiceGuess, Field(discriminator="kind")]
    move: Annotated[dict[str, Any], Field(min_length=1)]
    answer: Text


class Claim(_Part):
    """Part of the closing sentence: `says` in words, `holds` as a test of the shown numbers."""

    says: Text
    holds: Test


class Lesson(_Part):
    """One lesson.

    Attributes:
        slug: its name in URLs.
        order: sort key in the list.
        title, idea: heading, and one sentence on the topic.
        show: the numbers to show, most important first.
        controls: the controls that the student may move after the lesson.
        start: the playground's initial state where it differs from the defaults.
        steps: one to six guesses.
        sentence: the conclusion that the student can defend at the end.
        claims: the conditions that the conclusion depends on.
    """

    slug: str = Field(pattern=r"^[a-z][a-z0-9-]{0,60}$")
    order: int = Field(100, ge=1, le=1000)
    title: Text
    idea: Text
    show: Annotated[tuple[Number, ...], Field(min_length=1, max_length=6)]
    controls: tuple[Annotated[str, AfterValidator(_known_control)], ...] = ()
    start: dict[str, Any] = {}
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=6)]
    sentence: Text
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=6)]

    def states(self) -> list[State]:
        """The state at the start and after each step."""
        changes = [self.start, *(step.move for step in self.steps)]
        merged: dict[str, Any] = {}
        states = []
        for change in changes:
            merged = merged | change
            states.append(State.model_validate(merged))
        return states

    def numbers(self) -> set[str]:
        """The names of all numbers that it shows, asks for or claims, some with the prefix `true.`."""
        text = str(self.model_dump())
        return {*self.show, *(step.guess.of for step in self.steps if isinstance(step.guess, NumberGuess))} | {
            reference.rpartition("@")[0] for reference in _REFERENCE.findall(text)
        }

    def document(self) -> dict[str, Any]:
        """JSON for the browser, with complete states and parsed claims."""
        fields = self.model_dump(mode="json")
        states = (state.model_dump(mode="json", exclude_defaults=True) for state in self.states())
        fields["states"] = [state | {"transforms": state.get("transforms", [])} for state in states]
        for claim in fields["claims"]:
            claim["tree"] = parse_claim(claim["holds"])
        for step in fields["steps"]:
            for option in step["guess"].get("options", []):
                option["tree"] = parse_claim(option["when"])
        return fields


def read(path: Path) -> Lesson:
    """Read a lesson from a file; `FaultyLessonError` lists the problems."""
    try:
        if path.stat().st_size > LARGEST:
            raise FaultyLessonError([f"{path.name}: too large for a lesson (at most {LARGEST:,} bytes)"])
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FaultyLessonError([f"{path.name}: cannot be read ({error})"]) from None
    return parse(text, path.name)


def parse(text: str, name: str) -> Lesson:
    """Read a lesson from text; each problem starts with `name`.

    Raises:
        FaultyLessonError: lists all problems.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FaultyLessonError([f"{name}: {error}"]) from None
    try:
        lesson = Lesson.model_validate(values)
    except ValidationError as error:
        details = error.errors()
        raise FaultyLessonError([_line(name, one["loc"], _problem_text(one)) for one in details]) from None
    if problems := _problems_together(lesson):
        raise FaultyLessonError([_line(name, place, problem) for place, problem in problems])
    return lesson


def _problems_together(lesson: Lesson) -> list[tuple[Place, str]]:
    """Problems across fields: invalid merged states, and numbers of steps that do not exist or have not happened."""
    problems: list[tuple[Place, str]] = []
    merged: dict[str, Any] = {}
    places: list[Place] = [("start",), *(("steps", k, "move") for k in range(len(lesson.steps)))]
    for place, change in zip(places, [lesson.start, *(step.move for step in lesson.steps)], strict=True):
        try:
            State.model_validate(merged | change)
            merged |= change
        except ValidationError as error:
            problems += [((*place, *detail["loc"]), _problem_text(detail)) for detail in error.errors()]
    last = len(lesson.steps)
    # place, text or references, and the last step whose numbers it may name
    texts: list[tuple[Place, str, int]] = [(("sentence",), lesson.sentence, last)]
    named: list[tuple[Place, Iterable[tuple[str, int]], int]] = []
    for k, step in enumerate(lesson.steps):
        texts += [(("steps", k, "text"), step.text, k), (("steps", k, "question"), step.question, k)]
        texts.append((("steps", k, "answer"), step.answer, k + 1))
        if isinstance(step.guess, NumberGuess):
            continue
        for j, option in enumerate(step.guess.options):
            named.append((("steps", k, "guess", "options", j, "when"), references(parse_claim(option.when)), k + 1))
    for j, claim in enumerate(lesson.claims):
        texts.append((("claims", j, "says"), claim.says, last))
        named.append((("claims", j, "holds"), references(parse_claim(claim.holds)), last))
    for place, text, limit in texts:
        for piece in _PLACE.findall(text):
            name, _, at = piece.rpartition("@")
            if not _REFERENCE.fullmatch(piece) or name.removeprefix(TRUE) not in NUMBERS:
                problems.append((place, f"{{{piece}}} is not a number; write {{name@step}}, such as {{isoscore@1}}"))
            else:
                named.append((place, [(name, int(at))], limit))
    for place, refs, limit in named:
        why = "step {} has not happened yet" if place[0] == "steps" else f"the lesson has only {last} steps"
        problems += [(place, f"{name}@{at}: {why.format(at)}") for name, at in refs if at > limit]
    return problems


# ---------------------------------------------------------------------------------------------------- words


def _problem_text(error: Any) -> str:
    kind = error["type"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not a known field; check its spelling"
    text = str(error["msg"]).removeprefix("Value error, ")
    if kind.startswith(("int_", "float_", "string_", "literal_", "greater", "less", "bool_")):
        text += f", got {error['input']!r}"
    return text[:1].lower() + text[1:]


def _line(name: str, place: Place, problem: str) -> str:
    # pydantic's location includes the kind of guess
    return f"{name}: {_named([part for part in place if part not in ('number', 'choice')])}: {problem}"


def _named(keys: list[Any]) -> str:
    out = ""
    for key in keys:
        out += f" {key + 1}" if isinstance(key, int) else f"{'.' if out else ''}{key}"
    return out or "the file"
