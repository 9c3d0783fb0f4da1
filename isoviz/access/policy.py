"""What the operator allows visitors of the dashboard: environment variables, read in this one place.

The command line is bound by none of it. `python -m isoviz.access.policy` prints the table of docs/security.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isoviz.access.reach import API_WRITES, READ_ONLY, Reach, switched_on
from isoviz.errors import InputError
from isoviz.fence import VARIABLE as ROOTS

_QUOTAS: Final = {
    "queued": ("ISOVIZ_QUOTA_QUEUED", 50, "queued runs of one visitor"),
    "launch": ("ISOVIZ_QUOTA_LAUNCH", 50, "runs of one experiment"),
    "upload_mb": ("ISOVIZ_QUOTA_UPLOAD_MB", 500, "megabytes of uploads, vectors and texts kept for one visitor"),
    "jobs": ("ISOVIZ_QUOTA_JOBS", 4, "background computations of one visitor that wait or run"),
    "threads": ("ISOVIZ_QUOTA_THREADS", None, "threads of one run; unset: as many as the machine has cores"),
}
"""Field of `Quotas` → its variable, its default, what it counts."""

SETTINGS: Final = (
    (READ_ONLY, "0", "1: nothing can be changed from the browser, not even by the operator"),
    (
        API_WRITES,
        "0",
        "1: programs may launch, stop and resume runs through the HTTP API, with the rights of their link",
    ),
    (
        ROOTS,
        "the current folder and the home folder; none where others can reach the server",
        f"folders whose data and models the browser may name, separated by '{os.pathsep}'",
    ),
    *((name, "" if default is None else str(default), what) for name, default, what in _QUOTAS.values()),
)
"""Every variable, its default and what it does."""


@dataclass(frozen=True)
class Quotas:
    """How much one visitor may have; None is without limit. The operator has none."""

    queued: int | None = None
    launch: int | None = None
    upload_mb: int | None = None
    jobs: int | None = None
    threads: int | None = None

    def exceeded(self, name: str, wanted: int) -> str | None:
        """Why so much is too much, in a sentence that names the quota and who sets it; None if it is not.

        Args:
            name: a field of this class.
            wanted: what there would be.
        """
        limit = getattr(self, name)
        if limit is None or wanted <= limit:
            return None
        variable, _, what = _QUOTAS[name]
        return f"Over the quota: {what.partition(';')[0]}: {wanted:,} (at most {limit:,}; the operator sets {variable})"


@dataclass(frozen=True)
class Policy:
    """What the operator has set.

    Attributes:
        read_only: nothing can be changed from the browser.
        roots: folders below which the browser may name data and models, absolute; None: anywhere.
        quotas: of every visitor but the operator.
    """

    read_only: bool = False
    roots: tuple[Path, ...] | None = None
    quotas: Quotas = field(default_factory=Quotas)


UNRESTRICTED: Final = Policy()
"""The command line's."""


def read(found: Reach, environment: Mapping[str, str] = os.environ) -> Policy:
    """What the environment says; `InputError` names a variable that cannot be understood.

    Args:
        found: from where the server is reached, on which the default of the roots depends.
        environment: variables.
    """
    given = environment
    return Policy(
        read_only=switched_on(READ_ONLY, given),
        roots=_roots(given[ROOTS]) if ROOTS in given else default_roots(found),
        quotas=Quotas(**{name: _count(variable, given, default) for name, (variable, default, _) in _QUOTAS.items()}),
    )


def default_roots(found: Reach) -> tuple[Path, ...]:
    """The current folder and the home folder; none where others can reach the server, directly or through a proxy."""
    return (Path.cwd(), Path.home()) if found.on_loopback and found.url is None else ()


def _roots(text: str) -> tuple[Path, ...]:
    parts = [Path(part).expanduser() for part in text.split(os.pathsep) if part.strip()]
    for part in parts:
        if not part.is_absolute():
            raise InputError(f"{ROOTS}: '{part}' is not an absolute path", field=ROOTS)
    return tuple(parts)


def _count(variable: str, given: Mapping[str, str], default: int | None) -> int | None:
    text = given.get(variable, "").strip()
    if not text:
        return default
    if not text.isdecimal() or len(text) > 9:
        raise InputError(f"{variable}: expected a whole number, got '{text[:40]}'", field=variable)
    return int(text)


def table() -> str:
    """The settings as a Markdown table."""
    rows = [f"| `{name}` | {default} | {what} |" for name, default, what in SETTINGS]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
