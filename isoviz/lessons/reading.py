"""Lessons as TOML files: their fields, and error messages with line and field."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from isoviz.errors import InputError
from isoviz.lessons.expressions import MalformedError, parse_claim, references
from isoviz.lessons.state import State

NUMBERS = (
    *("isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio", "ev_1", "effective_rank", "rankme"),
    *("mean_cosine", "uniformity", "rogue_share", "abs_correlation", "twonn", "hubness", "i1", "i2", "best_accuracy"),
)
"""The numbers that a lesson may show, ask for and claim. `best_accuracy` is the best possible accuracy on two or more clusters
(`isoviz.lessons.checking.best_accuracy`)."""

LARGEST = 100_000
"""Maximum size of a lesson's file in bytes."""

TRUE = "true."
_PLACE = re.compile(r"\{([^{}]*)\}")
_REFERENCE = re.compile(r"(?:true\.)?[a-z][a-z0-9_]*@\d+")
Text = Annotated[str, Field(min_length=1)]


class FaultyLessonError(InputError):
    """An invalid lesson file.

    Args:
        problems: one line each, with file, line, field and problem.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Option(_Part):
    """One option; it is the right answer if `when` holds."""

    text: Text
    when: Text

    _when = field_validator("when")(lambda text: _checked_claim(text))


class NumberGuess(_Part):
    """A slider; the right answer is the number `of` after the step."""

    kind: Literal["number"]
    of: Text
    low: float
    high: float
    step: float = Field(gt=0)

    @field_validator("of")
    @classmethod
    def _known(cls, name: str) -> str:
        return _known_number(name)

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
    holds: Text

    _holds = field_validator("holds")(lambda text: _checked_claim(text))


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
    show: Annotated[tuple[str, ...], Field(min_length=1, max_length=6)]
    controls: tuple[str, ...] = ()
    start: dict[str, Any] = {}
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=6)]
    sentence: Text
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=6)]

    @field_validator("show")
    @classmethod
    def _known_numbers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_known_number, names))

    @field_validator("controls")
    @classmethod
    def _known_controls(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in State.model_fields:
                raise ValueError(f"unknown control '{name}' (allowed: {', '.join(State.model_fields)})")
        return names

    def states(self) -> list[State]:
        """The state at the start and after each step."""
        changes = [self.start, *(step.move for step in self.steps)]
        merged: dict[str, Any] = {}
        states = []
        for change in changes:
            merged = merged | change
            states.append(State.model_validate(merged))
        return states

    def document(self) -> dict[str, Any]:
        """JSON for the browser, with complete states and parsed claims."""
        fields = self.model_dump(mode="json")
        fields["states"] = [state.model_dump(mode="json", exclude_defaults=True) for state in self.states()]
        for state in fields["states"]:
            state["transforms"] = [
                {name: value for name, value in step.items() if value is not None}
                for step in state.get("transforms", [])
            ]
        for claim in fields["claims"]:
            claim["tree"] = parse_claim(claim["holds"])
        for step in fields["steps"]:
            for option in step["guess"].get("options", []):
                option["tree"] = parse_claim(option["when"])
        return fields


def read(path: Path) -> Lesson:
    """Read a lesson from a file; `FaultyLessonError` lists the problems with their lines."""
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
        problems = [(detail["loc"], _problem_text(detail)) for detail in error.errors()]
        raise FaultyLessonError([_line(text, name, place, problem) for place, problem in problems]) from None
    problems = list(_problems_together(lesson))
    if problems:
        raise FaultyLessonError([_line(text, name, place, problem) for place, problem in problems])
    return lesson


def _problems_together(lesson: Lesson) -> list[tuple[tuple[Any, ...], str]]:
    """Problems across fields: invalid merged states and invalid references to steps."""
    problems: list[tuple[tuple[Any, ...], str]] = []
    merged: dict[str, Any] = {}
    places: list[tuple[Any, ...]] = [("start",), *(("steps", k, "move") for k in range(len(lesson.steps)))]
    for place, change in zip(places, [lesson.start, *(step.move for step in lesson.steps)], strict=True):
        try:
            State.model_validate(merged | change)
            merged |= change
        except ValidationError as error:
            problems += [((*place, *detail["loc"]), _problem_text(detail)) for detail in error.errors()]
    last = len(lesson.steps)
    for k, step in enumerate(lesson.steps):
        guess = step.guess
        named: list[tuple[tuple[Any, ...], list[tuple[str, int]]]]
        if isinstance(guess, NumberGuess):
            named = [(("steps", k, "guess", "of"), [(guess.of, k + 1)])]
        else:
            named = [
                (("steps", k, "guess", "options", j, "when"), list(references(parse_claim(option.when))))
                for j, option in enumerate(guess.options)
            ]
        named.append((("steps", k, "answer"), _step_references(step.answer)))
        named.append((("steps", k, "text"), _step_references(step.text)))
        named.append((("steps", k, "question"), _step_references(step.question)))
        for place, refs in named:
            limit = k if place[-1] in ("text", "question") else k + 1
            problems += [(place, f"{name}@{at}: step {at} has not happened yet") for name, at in refs if at > limit]
    for j, claim in enumerate(lesson.claims):
        for name, at in references(parse_claim(claim.holds)):
            if at > last:
                problems.append((("claims", j, "holds"), f"{name}@{at}: the lesson has only {last} steps"))
        problems += _unknown_places(("claims", j, "says"), claim.says, last)
    problems += _unknown_places(("sentence",), lesson.sentence, last)
    for k, step in enumerate(lesson.steps):
        problems += _unknown_places(("steps", k, "answer"), step.answer, last)
        problems += _unknown_places(("steps", k, "text"), step.text, last)
        problems += _unknown_places(("steps", k, "question"), step.question, last)
    return problems


def _step_references(text: str) -> list[tuple[str, int]]:
    inside = [piece for piece in _PLACE.findall(text) if _REFERENCE.fullmatch(piece)]
    return [(piece.rpartition("@")[0], int(piece.rpartition("@")[2])) for piece in inside]


def _unknown_places(place: tuple[Any, ...], text: str, last: int) -> list[tuple[tuple[Any, ...], str]]:
    problems = []
    for piece in _PLACE.findall(text):
        name, _, step = piece.rpartition("@")
        if not _REFERENCE.fullmatch(piece) or name.removeprefix(TRUE) not in NUMBERS:
            problems.append((place, f"{{{piece}}} is not a number; write {{name@step}}, such as {{isoscore@1}}"))
        elif int(step) > last:
            problems.append((place, f"{{{piece}}}: the lesson has only {last} steps"))
    return problems


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


# ---------------------------------------------------------------------------------------------------- lines and words


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


def _line(text: str, name: str, place: tuple[Any, ...], problem: str) -> str:
    keys = [
        part for part in place if part not in ("number", "choice")
    ]  # pydantic's location includes the kind of guess
    number = _line_of(text, keys)
    return f"{name}{f', line {number}' if number else ''}: {_named(keys)}: {problem}"


def _named(keys: list[Any]) -> str:
    out = ""
    for key in keys:
        out += f" {key + 1}" if isinstance(key, int) else f"{'.' if out else ''}{key}"
    return out or "the file"


def _line_of(text: str, keys: list[Any]) -> int | None:
    """The line of a field, or of the nearest enclosing element that can be located; None if there is none."""
    location: list[Any] = []
    counts_seen: dict[tuple[Any, ...], int] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*(\[{1,2})\s*([\w.]+)\s*\]", line):
            location = []
            parts = header[2].split(".")
            for k, part in enumerate(parts):
                path = ".".join(map(str, [*location, part]))
                if header[1] == "[[" and k == len(parts) - 1:
                    counts[path] = counts.get(path, -1) + 1
                location += [part, counts[path]] if path in counts else [part]
            counts_seen[tuple(location)] = number
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            counts_seen[(*location, key[1])] = number
    for length in range(len(keys), 0, -1):
        if tuple(keys[:length]) in counts_seen:
            return counts_seen[tuple(keys[:length])]
    return None
