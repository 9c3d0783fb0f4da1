"""Limits what the browser may name: a process that serves pages reads only below its allowed folders, and from allowed hosts.

The command line, notebooks, runs and jobs are not restricted: what a visitor's run or job will read is checked when it is launched
(`isoviz.operations.access.service`). The engine checks wherever it turns text into a path, not in page fields, so that no page can
forget the check.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoviz.errors import InputError

VARIABLE: Final = "ISOVIZ_ROOTS"
HOSTS: Final = "ISOVIZ_STORE_HOSTS"
_NAMED: Final = 2
"""Maximum number of roots named in a message."""


@dataclass(frozen=True)
class Roots:
    """Folders from which data and models may be read, including subfolders.

    Attributes:
        named: set by the operator; shown in messages.
        own: filled by the app itself, such as uploads.
        hosts: names and ports of servers from which vectors may be read; None for a store's usual port.
    """

    named: tuple[Path, ...]
    own: tuple[Path, ...] = ()
    hosts: tuple[tuple[str, int | None], ...] = ()


_allowed_roots: Callable[[], Roots] | None = None
_unrestricted: ContextVar[bool] = ContextVar("unrestricted", default=False)


def restrict_to(roots: Callable[[], Roots] | None) -> None:
    """From now on this process reads data and models only below these folders, evaluated at each access; None: anywhere."""
    global _allowed_roots
    _allowed_roots = roots


@contextmanager
def unrestricted() -> Iterator[None]:
    """Lift the restriction to read paths that did not come from the browser, such as the model of a finished run."""
    token = _unrestricted.set(True)
    try:
        yield
    finally:
        _unrestricted.reset(token)


def roots() -> Roots | None:
    """The folders to which this process is restricted now; None if it is not restricted."""
    return None if _allowed_roots is None or _unrestricted.get() else _allowed_roots()


def resolve(text: str | os.PathLike[str], field: str, error: type[InputError] = InputError) -> Path:
    """A path from a user, with `~` expanded. If the process is restricted, links are resolved and the path must be in an
    allowed folder.

    Args:
        field: of the error.
        error: its class.

    Raises:
        error: the path is outside. The message does not reveal whether it exists.
    """
    allowed = roots()
    return Path(text).expanduser() if allowed is None else below(text, allowed, field, error)


def host(name: str, port: int | None, usual: int | None, field: str) -> None:
    """Refuse a server that is not on the operator's list, if the process is restricted; before any look-up of its name.

    Args:
        name: in lower case; empty for whatever a client's settings name.
        usual: the port of an entry without one.

    Raises:
        InputError: it is not listed.
    """
    allowed = roots()
    if allowed is not None and (name, port) not in [(one, its_port or usual) for one, its_port in allowed.hosts]:
        shown = f"{name}:{port}" if name else "a server without a name"
        advice = f"ask the operator to list it in {HOSTS}"
        raise InputError.at(field, f"{shown} cannot be reached from the browser; {advice}")


def below(text: str | os.PathLike[str], roots: Roots, field: str, error: type[InputError] = InputError) -> Path:
    """A path below one of the roots, with links resolved; otherwise like `resolve`."""
    name = os.fspath(text)
    if name == "~" or name.startswith("~/"):
        name = str(Path.home()) + name[1:]
    # Compare the text first: paths outside are never accessed, and `~name` is outside whether or not the user exists.
    lexical = os.path.normpath(os.path.join(os.getcwd(), name))
    every = (*roots.named, *roots.own)
    real_roots = [os.path.realpath(root) for root in every]
    if not name.startswith("~") and "\0" not in name:
        named = [*(os.path.normpath(root) for root in every), *real_roots]
        if _is_below(lexical, named):
            real = os.path.realpath(lexical)
            if _is_below(real, real_roots):
                return Path(real)
    raise error(
        _words(roots.named, field), field=field, advice="To allow it, restart the app with --roots and all its folders."
    )


def check_contents(folder: Path, roots: Roots, field: str, error: type[InputError] = InputError) -> None:
    """Raise `error` if a link in this folder, or in one of a model's subfolders, leads out of the roots."""
    for path in (*folder.glob("*"), *folder.glob("*_*/*")):
        below(path, roots, field, error)


def model_folder(name: str, roots: Roots | None, error: type[InputError] = InputError) -> Path | None:
    """The directory that a model's name may refer to; None if it can only be a hub id because it is outside the roots.

    Args:
        roots: allowed folders; None for those of this process.

    Raises:
        error: the name can only be a path, and it is outside.
    """
    try:
        return resolve(name, "model", error) if roots is None else below(name, roots, "model", error)
    except InputError:
        if name.startswith(("/", ".", "~")) or "\0" in name or name.partition("@")[0].count("/") > 1:
            raise
        return None


def _is_below(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)


def _words(roots: Sequence[Path], field: str) -> str:
    if not roots:
        return f"{field}: folders on the server cannot be read from the browser; ask the operator to list them in {VARIABLE}"
    more = f" and {len(roots) - _NAMED} more" if len(roots) > _NAMED else ""
    names = ", ".join(map(str, roots[:_NAMED])) + more
    return (
        f"{field}: folders outside {names} cannot be read from the browser; ask the operator to add yours to {VARIABLE}"
    )
