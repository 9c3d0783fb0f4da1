"""The groups of rows, such as their languages, that some transforms need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError

Groups = NDArray[np.int64]
"""(n,) codes from 0 of the rows' groups, −1 if unknown."""


def checked_groups(groups: Any, n: int) -> Groups | None:
    """Codes for n points; `InputError` (field `groups`) if they are none."""
    if groups is None:
        return None
    codes = np.asarray(groups)
    if codes.shape != (n,) or not np.issubdtype(codes.dtype, np.integer) or (n and codes.min() < -1):
        raise InputError(f"groups must be {n} whole numbers of at least -1, one for each point", field="groups")
    return codes.astype(np.int64)


def needed_groups(groups: Groups | None, slug: str) -> Groups:
    """The codes; `InputError` (field `groups`) if there are none."""
    if groups is None:
        raise InputError(f"{slug} needs the group of each row, such as its language", field="groups")
    return groups
