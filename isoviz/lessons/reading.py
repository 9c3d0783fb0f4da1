"""Lessons as TOML files: their fields, and error messages that name the field."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from isoviz.errors import InputError, input_error
from isoviz.lessons.expressions import parse_claim, references
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
    for name, _ in references(parse_claim(text)):
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

    @model_validator(mode="after")
    def _in_order(self) -> Lesson:
        """The states are valid, and texts and tests name only numbers of steps that have happened."""
        self.states()
        last = len(self.steps)
        texts = [(self.sentence, last), *((claim.says, last) for claim in self.claims)]
        tests = [(claim.holds, last) for claim in self.claims]
        for done, step in enumerate(self.steps):
            texts += [(step.text, done), (step.question, done), (step.answer, done + 1)]
            tests += [(option.when, done + 1) for option in getattr(step.guess, "options", ())]
        named = [(name, at, most) for test, most in tests for name, at in references(parse_claim(test))]
        for text, most in texts:
            for piece in _PLACE.findall(text):
                name, _, at = piece.rpartition("@")
                if not _REFERENCE.fullmatch(piece) or name.removeprefix(TRUE) not in NUMBERS:
                    raise ValueError(f"{{{piece}}} is not a number; write {{name@step}}, such as {{isoscore@1}}")
                named.append((name, int(at), most))
        if late := [f"{name}@{at}" for name, at, most in named if at > most]:
            raise ValueError(f"{late[0]}: that step has not happened yet where it is named")
        return self

    def states(self) -> list[State]:
        """The state at the start and after each step."""
        changes = [self.start, *(step.move for step in self.steps)]
        merged: dict[str, Any] = {}
        states = []
        for done, change in enumerate(changes):
            merged = merged | change
            try:
                states.append(State.model_validate(merged))
            except ValidationError as error:
                place = f"steps.{done - 1}.move" if done else "start"
                raise ValueError(f"{place}: {input_error(error, depth=3)}") from None
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
    """Read a lesson from a file; raises like `parse`."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path.name}: too large for a lesson (at most {LARGEST:,} bytes)")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: cannot be read ({error})") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> Lesson:
    """Read a lesson from text. Raises `InputError`, which begins with `name` and has the first problem and its field."""
    try:
        return Lesson.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: {error}") from None
    except ValidationError as error:
        raise InputError(f"{name}: {input_error(error, depth=6)}") from None
