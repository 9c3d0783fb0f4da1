"""Visitors: an id for quotas and ownership, and a role."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Role(enum.IntEnum):
    """A visitor's role; each role includes those below it."""

    VIEWER = 1
    """Can see runs, tables and figures, but start nothing."""
    RUNNER = 2
    """Can also launch, stop, resume and delete their own runs, and start computations."""
    OPERATOR = 3
    """The person who runs the server or uses its command line: all runs, no quota. In the browser, even the operator can use only folders
    below the roots (`isoviz.access.policy`), because they may follow a link from someone else."""


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
