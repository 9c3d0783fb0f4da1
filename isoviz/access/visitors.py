"""Who is asking: a name for quotas and ownership, and a role."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Role(enum.IntEnum):
    """What a visitor may do; each role includes those below it."""

    VIEWER = 1
    """Sees runs, tables and figures, and starts nothing."""
    RUNNER = 2
    """Also launches, stops, resumes and deletes their own runs, and starts computations."""
    OPERATOR = 3
    """The person who started the server or types a command on its machine: every run, no quota. In the browser even they name folders
    only under the roots (`isoviz.access.policy`), because they may follow a link that someone else made."""


@dataclass(frozen=True)
class Visitor:
    """Someone who asks.

    Args:
        id: stable for one person or browser: a login's e-mail address, or a random name kept in a cookie.
        role: what they may do.
    """

    id: str
    role: Role

    def may(self, needed: Role) -> bool:
        """Whether this visitor has at least that role."""
        return self.role >= needed


OPERATOR = Visitor("operator", Role.OPERATOR)
"""The command line, which has the rights of the account it runs under."""
