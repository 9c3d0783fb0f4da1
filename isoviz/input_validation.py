"""Input from outside: paths, numbers, and files that other libraries parse. Turns bad input into an `InputError`.

Every path, number and file from a user passes through this module. Invalid input is reported in one line; any other exception
is a bug.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from isoviz import allowed_paths
from isoviz.errors import InputError, IsoVizError, shortened

_log = logging.getLogger(__name__)

MOST_WHOLE: Final = 2**31 - 1
"""Largest count, seed or index; larger whole numbers overflow in some of the libraries."""
MOST_JSON: Final = 50 * 2**20
"""Maximum size in bytes of a JSON file."""
_FENCED: Final = ("data", "model", "vectors", "embeddings", "texts", "pairs", "labels")
"""Fields that users fill in on pages."""


# ------------------------------------------------------------------------------------------------------------- paths


def path(text: str | os.PathLike[str], field: str, error: type[InputError] = InputError) -> Path:
    """A path from a user, with `~` expanded. It need not exist, but it is valid and can be queried without an error.

    Args:
        field: of the error.
        error: its class.

    Raises:
        error: the name is invalid, the user in `~name` does not exist, links form a loop, or access is denied; for data and
            models also if the browser may not read there (`isoviz.allowed_paths`).
    """
    name = os.fspath(text)
    shown = f"{field}: '{shortened(name)}'"
    try:
        checked_path = allowed_paths.resolve(name, field, error) if field in _FENCED else Path(name).expanduser()
        checked_path.stat()
    except RuntimeError:
        user = shortened(name.split(os.sep)[0])
        raise error.at(field, f"there is no user '{user}' on this machine; write the full path") from None
    except InputError:  # a value error too
        raise
    except ValueError:  # a NUL character, or half of one
        raise error(f"{shown} is no path: it has a character that no path can have", field=field) from None
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise error(f"{shown} cannot be read: {_words(problem)}", field=field) from None
    return checked_path


def file(text: str | os.PathLike[str], field: str, error: type[InputError] = InputError) -> Path:
    """An existing regular file; directories, devices and missing files are refused."""
    file_path = path(text, field, error)
    shown = f"'{shortened(os.fspath(text))}'"
    try:
        mode = file_path.stat().st_mode
    except OSError:
        raise error.at(field, f"no file {shown}") from None
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise error.at(field, f"no file {shown}: it is {kind}")
    return file_path


def folder(text: str | os.PathLike[str], field: str, error: type[InputError] = InputError) -> Path | None:
    """A readable directory; None if there is no directory with this name."""
    folder_path = path(text, field, error)
    if not folder_path.is_dir():
        return None
    if not os.access(folder_path, os.R_OK | os.X_OK):
        raise error.at(field, f"'{shortened(os.fspath(text))}' cannot be read: permission denied")
    return folder_path


def new_folder(text: str | os.PathLike[str], field: str, *, empty: bool = False) -> Path:
    """A directory to write into, made if it is not there; with `empty` one that holds files is refused."""
    folder_path = path(text, field)
    try:
        folder_path.mkdir(parents=True, exist_ok=True)
        if empty and os.listdir(folder_path):
            raise InputError.at(field, f"'{text}' is not empty")
    except OSError as problem:
        raise InputError.at(field, f"cannot make the folder '{text}': {reason(problem)}") from None
    return folder_path


def _words(problem: OSError) -> str:
    if problem.errno == errno.ELOOP:
        return "its links form a loop"
    return (problem.strerror or type(problem).__name__).lower()


# ------------------------------------------------------------------------------------------------------------- numbers


def whole_number(text: str) -> int:
    """A whole number of at most 31 bits; `ValueError` says what is allowed."""
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or abs(value) > MOST_WHOLE:
        raise ValueError(f"expected a whole number of at most {MOST_WHOLE:,}, got '{shortened(text)}'")
    return value


def number(text: str) -> float:
    """A finite number; `ValueError` says what is allowed."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got '{shortened(text)}'")
    return value


def positive_setting(name: str) -> float | None:
    """The number in an environment variable; None if it is not set. Raises `InputError` unless it is above 0."""
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise InputError(f"{name}: must be a number above 0 (got '{text[:40]}')")
    return value if text else None


# ------------------------------------------------------------------------------------------------------------- files


@contextmanager
def parsing(what: str, field: str, error: type[InputError] = InputError) -> Iterator[None]:
    """Wrap another library's parsing of a user's file: every exception becomes an error about the file.

    Args:
        what: the file and its format as the beginning of a sentence: `reviews.csv cannot be read as csv`.
    """
    try:
        yield
    except (IsoVizError, ModuleNotFoundError):  # a package of another installation extra is no fault of the file
        raise
    except MemoryError as problem:
        raise error.at(field, f"{what}: it needs more memory than this machine has") from problem
    except Exception as problem:
        _log.debug("%s", what, exc_info=True)
        raise error.at(field, f"{what}: {reason(problem)}") from problem
    except BaseException as problem:
        # raised by libraries written in Rust; there is no class to import
        if type(problem).__name__ != "PanicException":
            raise
        raise error.at(field, f"{what}: {reason(problem)}") from problem


def reason(problem: BaseException) -> str:
    """The first non-empty line of an error's message, or else a description of the error."""
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, OSError) and problem.strerror:
        return _words(problem)
    text = next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
    return shortened(text, 160)


def json_object(file_path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if the file is missing, unreadable or holds no object."""
    try:
        if not file_path.is_file() or file_path.stat().st_size > MOST_JSON:
            return None
        content = json.loads(file_path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


# ------------------------------------------------------------------------------------------------------------- addresses


def is_loopback(address: str) -> bool:
    """Whether an address or name is this machine itself: `localhost`, 127.0.0.0/8 or ::1."""
    name = address.strip("[]").lower().rstrip(".")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
