"""The operator's settings for visitors of the dashboard, from environment variables.

They do not apply to the command line. docs/security.md has them in a table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from isoviz.allowed_paths import HOSTS as STORE_HOSTS
from isoviz.allowed_paths import VARIABLE as ROOTS
from isoviz.errors import InputError
from isoviz.operations.access.allowed_hosts import READ_ONLY, AllowedHosts, switched_on

_QUOTAS: Final = {
    "queued": ("ISOVIZ_QUOTA_QUEUED", 50, "queued runs of one visitor"),
    "launch": ("ISOVIZ_QUOTA_LAUNCH", 50, "runs of one experiment"),
    "upload_mb": ("ISOVIZ_QUOTA_UPLOAD_MB", 500, "megabytes of uploads, vectors and texts kept for one visitor"),
    "jobs": ("ISOVIZ_QUOTA_JOBS", 4, "background computations of one visitor that wait or run"),
    "threads": ("ISOVIZ_QUOTA_THREADS", None, "threads of one run; unset: as many as the machine has cores"),
}
"""Field of `Quotas` → variable, default, description."""


@dataclass(frozen=True)
class Quotas:
    """Limits per visitor; None: no limit. The operator has no limits."""

    queued: int | None = None
    launch: int | None = None
    upload_mb: int | None = None
    jobs: int | None = None
    threads: int | None = None

    def exceeded(self, name: str, amount: int) -> str | None:
        """A sentence that names the exceeded quota and its variable; None if the amount is allowed.

        Args:
            name: a field of this class.
            amount: the requested total.
        """
        limit = getattr(self, name)
        if limit is None or amount <= limit:
            return None
        variable, _, description = _QUOTAS[name]
        return f"Over the quota: {description.partition(';')[0]}: {amount:,} (at most {limit:,}; the operator sets {variable})"


@dataclass(frozen=True)
class Policy:
    """The operator's settings.

    Attributes:
        read_only: nothing can be changed from the browser.
        roots: folders below which the browser may name data and models, absolute; None: anywhere.
        quotas: limits of all visitors except the operator.
        store_hosts: names and ports of servers from which visitors may read vectors; None for a store's usual port.
    """

    read_only: bool = False
    roots: tuple[Path, ...] | None = None
    quotas: Quotas = field(default_factory=Quotas)
    store_hosts: tuple[tuple[str, int | None], ...] = ()


UNRESTRICTED: Final = Policy()
"""The policy of the command line."""


def read(allowed: AllowedHosts, environment: Mapping[str, str] = os.environ) -> Policy:
    """The policy in the environment. Raises `InputError` for an invalid variable.

    Args:
        allowed: how the server can be reached, which determines the default roots.
        environment: variables.
    """
    return Policy(
        read_only=switched_on(READ_ONLY, environment),
        roots=folders(environment[ROOTS]) if ROOTS in environment else default_roots(allowed),
        quotas=Quotas(
            **{name: _count(variable, environment, default) for name, (variable, default, _) in _QUOTAS.items()}
        ),
        store_hosts=hosts(environment.get(STORE_HOSTS, "")),
    )


def default_roots(allowed: AllowedHosts) -> tuple[Path, ...]:
    """The current folder and the home folder; none where others can reach the server, directly or through a proxy."""
    return (Path.cwd(), Path.home()) if allowed.on_loopback and allowed.url is None else ()


def folders(text: str) -> tuple[Path, ...]:
    """The folders that `ISOVIZ_ROOTS` names. Raises `InputError` for a relative path."""
    parts = [Path(part).expanduser() for part in text.split(os.pathsep) if part.strip()]
    for part in parts:
        if not part.is_absolute():
            raise InputError.at(ROOTS, f"'{part}' is not an absolute path")
    return tuple(parts)


def hosts(text: str) -> tuple[tuple[str, int | None], ...]:
    """The servers that `ISOVIZ_STORE_HOSTS` names, with commas: `db.example.org` or `db.example.org:6333`."""
    listed = []
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            parts = urlsplit(f"//{part}")
            listed.append((parts.hostname or "", parts.port))
        except ValueError:
            parts = urlsplit("")
        if not parts.hostname or "@" in part or "/" in part or "*" in part:
            expected = "expected hosts such as db.example.org or db.example.org:6333"
            raise InputError.at(STORE_HOSTS, f"{expected}, got '{part[:40]}'")
    return tuple(listed)


def _count(variable: str, environment: Mapping[str, str], default: int | None) -> int | None:
    text = environment.get(variable, "").strip()
    if not text:
        return default
    if not text.isdecimal() or len(text) > 9:
        raise InputError.at(variable, f"expected a whole number, got '{text[:40]}'")
    return int(text)
