"""The errors a user can act on. Everything else that is raised is a bug and keeps its traceback.

Each message is one line that says what was got and what is allowed; `field` names the form field or option it belongs to,
so that a page can show it beside the widget and the command line can name the option.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class IsoVizError(Exception):
    """Base of the family: something the user can mend.

    Args:
        message: one line, what was got and what is allowed.
        field: the configuration field it belongs to (`model`, `data`, `params.beta`, ...), if any.
        advice: what to try next, if it is not evident from the message.
    """

    def __init__(self, message: str, *, field: str | None = None, advice: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.advice = advice


class InputError(IsoVizError, ValueError):
    """A name, value or option that is not allowed (exit code 2 on the command line)."""


class DataError(InputError):
    """A file or table that cannot serve as task data."""


class ModelError(InputError):
    """A model that cannot be found or loaded."""


class StoreError(IsoVizError):
    """A run or a store that is not there, is in use, or was written by a newer version."""


class AccessError(IsoVizError):
    """Something that this visitor may not do, or not so much of it."""


class DivergedError(IsoVizError):
    """A loss term became non-finite.

    Args:
        term: the loss term that did (`task`, `istar`, ...).
        step: the optimiser step, counted from 1.
    """

    def __init__(self, term: str, step: int, advice: str) -> None:
        super().__init__(f"the loss term '{term}' became non-finite at step {step}", advice=advice)
        self.term = term
        self.step = step


def unknown_name(kind: str, got: str, allowed: Iterable[str], *, field: str) -> InputError:
    """The error for a name that is not in a catalogue, with the nearest allowed name if one is near."""
    names = sorted(allowed)
    near = get_close_matches(got, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return InputError(f"unknown {kind} '{got}'{hint} (allowed: {', '.join(names)})", field=field)


def input_error(error: ValidationError, prefix: str = "") -> InputError:
    """The first violation of a pydantic model as a one-line `InputError`."""
    first = error.errors()[0]
    name = prefix + ".".join(str(part) for part in first["loc"][:1])
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return InputError(f"{name}: {message} (got {first['input']!r})", field=name)
