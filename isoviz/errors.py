"""The errors a user can act on. Everything else that is raised is a bug and keeps its traceback.

Each message is one line with the given and the allowed values. `field` names the form field or option, so that a page can show
the message beside the widget and the command line can name the option.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

if TYPE_CHECKING:
    from pydantic import ValidationError

Item = TypeVar("Item")

DISTRIBUTION: Final = "isoviz-embeddings"
"""This package's name in package indexes, where `isoviz` is a program about isoforms."""
LONGEST: Final = 600
"""Maximum number of characters in a message."""
LINE: Final = 300
"""Maximum number of characters in the command line's error line."""
_ECHOED: Final = 60
"""Maximum number of characters of a value repeated in a message."""
_MEMORY_SIGNS: Final = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "unable to allocate",
    "bad_alloc",
    "failed to map segment",  # when importing a library
    "can't start new thread",
    "launch worker thread",  # Arrow's
    "malloc of size",
    "realloc of size",
)
_USER: Final = re.compile(r"(\w://)[^\s]*@")
"""User and password in a URL; up to the last '@', because a password may have one."""
_QUOTED: Final = re.compile(rf"(?<![\w])'[^']{{{_ECHOED + 1},}}'|\S{{{2 * _ECHOED},}}")


def shortened(value: object, most: int = _ECHOED) -> str:
    """A value for use in a message: one printable line, shortened in the middle if it is longer than `most`."""
    text = value if isinstance(value, str) else str(value)
    if len(text) > 4 * most:  # a name may have a million characters
        text = text[: 2 * most] + text[-2 * most :]
    text = printable(text)
    return text if len(text) <= most else text[: most // 2] + "…" + text[-(most - most // 2 - 1) :]


def printable(text: str) -> str:
    """Text on one line, with unprintable characters (NUL, lone surrogates, direction marks) escaped."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in line
    )


def without_password(text: str) -> str:
    """Text in which what stands before the host of a URL is left out."""
    return _USER.sub(r"\1…@", text)


def one_line(text: str, most: int = LONGEST) -> str:
    """A message on one line of at most `most` characters: shortens long quoted values and words first, then the end."""
    line = printable(text if len(text) < 100 * most else text[: 50 * most] + " … " + text[-50 * most :])
    if len(line) <= most:
        return line
    line = _QUOTED.sub(lambda match: _cut_quoted(match[0]), line)
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _cut_quoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return f"'{shortened(text[1:-1])}'" if quoted else shortened(text)


def listed(names: Iterable[object], most: int = 140) -> str:
    """Comma-separated names; if they exceed `most` characters, only those that fit, and the total number."""
    every = [shortened(name) for name in names]
    if len(", ".join(every)) <= most:
        return ", ".join(every)
    shown: list[str] = []
    for name in every:
        if len(", ".join([*shown, name])) > most:
            break
        shown.append(name)
    return f"{', '.join(shown)}, … ({len(every):,} in total)"


def install(extra: str) -> str:
    """The command that installs an extra of this package."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


class IsoVizError(Exception):
    """Base class of errors that the user can fix.

    Args:
        message: the given and the allowed values; reduced to one line of at most `LONGEST` characters.
        field: the configuration field it belongs to (`model`, `data`, `params.beta`, ...), if any.
        advice: what to try next, if it is not evident from the message.

    Attributes:
        choices: file → names of which a form may offer the right one.
    """

    choices: Mapping[str, list[str]] = {}

    def __init__(self, message: str, *, field: str | None = None, advice: str | None = None) -> None:
        super().__init__(one_line(without_password(message)))
        self.field = field
        self.advice = advice


class InputError(IsoVizError, ValueError):
    """A name, value or option that is not allowed (exit code 2 on the command line)."""

    @classmethod
    def at(cls, field: str, problem: str, advice: str | None = None) -> Self:
        """The error of a form field or option, whose message begins with its name."""
        return cls(f"{field}: {problem}", field=field, advice=advice)


class DataError(InputError):
    """A file or table that cannot be used as task data."""


class ModelError(InputError):
    """A model that cannot be found or loaded."""


class StoreError(IsoVizError):
    """A run or store that does not exist, is in use, or was written by a newer version."""


class AccessError(IsoVizError):
    """An action that this visitor may not perform, or a quota exceeded."""


class DifferentSetupsError(InputError):
    """Runs differ in more than the compared setting."""


class DivergedError(IsoVizError):
    """A loss term or a weight became non-finite.

    Args:
        term: the non-finite loss term (`task`, `istar`, ...), or the name of the weights.
        step: the optimiser step, counted from 1; 0 before the first.
        what: the kind of `term`.
    """

    def __init__(self, term: str, step: int, advice: str, what: str = "the loss term") -> None:
        super().__init__(f"{what} '{term}' became non-finite at step {step}", advice=advice)
        self.term = term
        self.step = step


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its chain of causes and contexts, outermost first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and not any(current is one for one in chain):
        chain.append(current)
        yield current
        current = current.__cause__ or current.__context__


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one of its causes, means out of memory; libraries report this in many ways."""
    return any(_says_out_of_memory(cause) for cause in causes(error))


def _says_out_of_memory(error: BaseException) -> bool:
    # By name, so that torch need not be imported: torch.OutOfMemoryError, torch.cuda.OutOfMemoryError. On a CPU torch raises a
    # plain RuntimeError, importing its libraries an ImportError, and safetensors its own error.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = str(error).lower()
    return any(sign in text for sign in _MEMORY_SIGNS)


def to_json(error: BaseException) -> dict[str, Any]:
    """An error for another process."""
    # A subclass of another module arrives as its base class here.
    ours = [kind.__name__ for kind in type(error).__mro__ if globals().get(kind.__name__) is kind]
    return {
        "type": ours[0] if ours else type(error).__name__,
        "message": str(error),
        "attributes": {name: value for name, value in vars(error).items() if ours and not name.startswith("_")},
        "memory": is_out_of_memory(error),
        "errno": next((cause.errno for cause in causes(error) if isinstance(cause, OSError)), None),
    }


def from_json(body: Mapping[str, Any]) -> Exception:
    """The error of `to_json`; one of a library keeps its name and message."""
    kind = globals().get(body["type"])
    if isinstance(kind, type) and issubclass(kind, IsoVizError):
        known = kind.__new__(kind, body["message"])
        vars(known).update(body["attributes"])
        return known
    base = MemoryError if body["memory"] else RuntimeError if body["errno"] is None else OSError
    error: Exception = type(body["type"], (base,), {})(body["message"])
    if isinstance(error, OSError):
        error.errno = body["errno"]
    return error


def unknown_name(kind: str, got: str, allowed: Iterable[str], *, field: str) -> InputError:
    """The error for a name that is not in a catalogue, with the closest allowed name if there is one."""
    names = sorted(allowed)
    near = get_close_matches(got[:_ECHOED], names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return InputError(f"unknown {kind} '{shortened(got)}'{hint} (allowed: {listed(names, 180)})", field=field)


def named(items: Mapping[str, Item], name: str, kind: str) -> Item:
    """The item with this name; the error of `unknown_name`, in the field `kind`, if there is none."""
    if name not in items:
        raise unknown_name(kind, name, items, field=kind)
    return items[name]


def input_error(error: ValidationError, prefix: str = "", depth: int = 1) -> InputError:
    """The first violation of a pydantic model as a one-line `InputError`, whose field has at most `depth` parts."""
    first = error.errors()[0]
    name = prefix + ".".join(str(part) for part in first["loc"][:depth])
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if not name:  # of several fields together
        return InputError(message)
    if first["type"] == "missing":
        return InputError.at(name, message)
    return InputError.at(name, f"{message} (got {shortened(repr_of(first['input']))})")


def repr_of(value: object) -> str:
    """`repr`, also for integers with more digits than Python converts to text."""
    try:
        return repr(value)
    except ValueError:
        return "a whole number with thousands of digits"
