"""Roles of people who log in, by e-mail address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from isoviz.access.visitors import Role, Visitor
from isoviz.errors import InputError

VARIABLES = {Role.OPERATOR: "ISOVIZ_OPERATORS", Role.RUNNER: "ISOVIZ_RUNNERS", Role.VIEWER: "ISOVIZ_VIEWERS"}
"""Comma-separated: addresses, domains as `@example.org`, or `*` for everyone whom the login provider admits."""


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

        Unverified addresses are ignored, because a person could register with any address.
        """
        email = claims.get("email")
        if not isinstance(email, str) or "@" not in email or claims.get("email_verified") in (False, "false"):
            return None
        address = email.strip().lower()
        named = {"*", address, f"@{address.rpartition('@')[2]}"}
        roles = [role for role, entries in self.listed.items() if entries & named]
        return Visitor(address, max(roles)) if roles else None
