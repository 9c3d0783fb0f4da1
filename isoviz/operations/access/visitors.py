"""Visitors: an id for quotas and ownership, and a role; of people who log in, by their e-mail address."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from isoviz.errors import InputError


class Role(enum.IntEnum):
    """A visitor's role; each role includes those below it."""

    VIEWER = 1
    """Can see runs, tables and figures, but start nothing."""
    RUNNER = 2
    """Can also launch, stop, resume and delete their own runs, and start computations."""
    OPERATOR = 3
    """The person who runs the server or uses its command line: all runs, no quota. In the browser, even the operator can use only folders
    below the roots (`isoviz.operations.access.policy`), because they may follow a link from someone else."""


@dataclass(frozen=True)
class Visitor:
    """A visitor.

    Args:
        id: stable id of a person or browser: a login's e-mail address, or a random name in a cookie.
        role: the visitor's role.
    """

    id: str
    role: Role

    def may(self, needed: Role) -> bool:
        """Whether this visitor has at least that role."""
        return self.role >= needed


OPERATOR = Visitor("operator", Role.OPERATOR)
"""The command line, with the rights of its account."""

VARIABLES = {Role.OPERATOR: "ISOVIZ_OPERATORS", Role.RUNNER: "ISOVIZ_RUNNERS", Role.VIEWER: "ISOVIZ_VIEWERS"}
"""Comma-separated: addresses, domains as `@example.org`, or `*` for everyone whom the login provider admits."""

_ADDRESS = re.compile(r"[^\s@,;<>\"]+@[^\s@,;<>\"]+")
"""One address: mail programs read several, or a name, from others."""


@dataclass(frozen=True)
class People:
    """E-mail addresses by role; a person gets the highest matching role."""

    listed: Mapping[Role, frozenset[str]]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> People:
        """The lists in `VARIABLES`.

        Raises:
            InputError: the lists are empty, or an entry is neither an address, a domain nor `*`.
        """
        listed = {}
        for role, variable in VARIABLES.items():
            entries = [part.strip().lower() for part in environment.get(variable, "").split(",") if part.strip()]
            for entry in entries:
                name, at, domain = entry.rpartition("@")
                if entry != "*" and (not at or not domain or "@" in name or any(mark.isspace() for mark in entry)):
                    raise InputError(f"{variable}: expected addresses, @domains or * (got {entry[:80]!r})")
            listed[role] = frozenset(entries)
        if not any(listed.values()):
            raise InputError(
                f"login is configured, but no one is allowed to log in: set {', '.join(VARIABLES.values())} (addresses, @domains or *)"
            )
        return cls(listed)

    def visitor(self, claims: Mapping[str, object]) -> Visitor | None:
        """The visitor for a login provider's claims; None if not listed.

        Addresses that are not verified are ignored, because a person could register with any address. A provider that does not say
        so verifies all.
        """
        email = claims.get("email")
        if not isinstance(email, str) or not _ADDRESS.fullmatch(email) or not email.isprintable():
            return None
        if claims.get("email_verified", True) not in (True, "true"):
            return None
        address = email.lower() if email.isascii() else email  # the small form of the Kelvin sign is an ordinary k
        named = {"*", address, f"@{address.rpartition('@')[2]}"}
        roles = [role for role, entries in self.listed.items() if entries & named]
        return Visitor(address, max(roles)) if roles else None
