"""Limits on reading files from the browser, set by the operator and named in the error if exceeded.

They apply in processes that read for the dashboard (`isoviz.jobs.guarded`). The command line runs with its user's own rights
and is not limited.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Final

import psutil

from isoviz import fence
from isoviz.errors import DataError, InputError
from isoviz.fence import Roots

GIB: Final = 2**30


@dataclass(frozen=True)
class Limits:
    """Limits for reading one file, or the files of one task.

    Attributes:
        rows: number of rows read.
        columns: number of columns of a table.
        cells: rows × columns read.
        expanded: GiB of decoded content.
        memory: GiB by which the process may grow.
        seconds: wall time.
    """

    rows: int = 5_000_000
    columns: int = 10_000
    cells: int = 50_000_000
    expanded: float = 2.0
    memory: float = 4.0
    seconds: float = 120.0

    def check(self, what: str, counts: Mapping[str, float], field: str = "data") -> None:
        """Raise `DataError` for the first count that exceeds its limit.

        Args:
            what: the name of the file.
            counts: name of a limit → actual count; `expanded` in bytes.
        """
        for name, count in counts.items():
            limit = getattr(self, name)
            if count > limit * (GIB if name == "expanded" else 1):
                raise DataError(f"{field}: {what} has {_amount(name, count)}; {self.words(name)}", field=field)

    def words(self, name: str) -> str:
        """`this server reads at most 120 seconds (ISOVIZ_READ_SECONDS)`."""
        limit = getattr(self, name)
        return f"this server reads at most {_amount(name, limit * GIB if name in _BYTES else limit)} ({variable(name)})"


UNLIMITED: Final = Limits(*(10**12,) * 3, *(1e6,) * 3)
_BYTES: Final = ("expanded", "memory")
_WORDS: Final = {"expanded": "GiB once decoded", "memory": "GiB of memory"}

active: Limits | None = None
"""The limits of this process; None if it is not limited."""


def variable(name: str) -> str:
    """The environment variable that sets a limit."""
    return f"ISOVIZ_READ_{name.upper()}"


def from_environment() -> Limits:
    """The operator's limits. Memory is at most half of the machine's unless it is set.

    Raises:
        InputError: a variable that is not a number above 0.
    """
    values: dict[str, float] = {}
    for field in fields(Limits):
        setting = os.environ.get(variable(field.name), "").strip()
        if not setting:
            continue
        try:
            number = float(setting)
        except ValueError:
            number = -1.0
        if not 0 < number < 1e15:
            raise InputError(f"{variable(field.name)}: must be a number above 0 (got '{setting[:40]}')")
        values[field.name] = int(number) if isinstance(field.default, int) else number
    values.setdefault("memory", min(Limits.memory, psutil.virtual_memory().total / 2 / GIB))
    return Limits(**values)  # type: ignore[arg-type]


@contextmanager
def confined(roots: Roots | None) -> Iterator[None]:
    """Restrict work for a visitor: data and models are read only from these folders, and within the operator's limits. The
    request was checked when it was made, but a folder could have been replaced by a link since.

    Args:
        roots: None for the operator and the command line, which are not restricted.
    """
    global active
    if roots is None:
        yield
        return
    fence.restrict_to(lambda: roots)
    active = from_environment()
    try:
        yield
    finally:
        fence.restrict_to(None)
        active = None


def check(what: str, field: str = "data", **counts: float) -> None:
    """Raise `DataError` if a file exceeds this process's limits, if any; counts as for `Limits.check`."""
    if active is not None:
        active.check(what, counts, field)


def _amount(name: str, count: float) -> str:
    if name in _BYTES:
        return f"{count / GIB:,.3g} {_WORDS[name]}"
    return f"{count:,.0f} {name}"
