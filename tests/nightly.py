"""Which tests `make test` leaves to `make test-all`: the rest of slow matrices, each of which keeps a case in `make test`.

The environment variable ISOVIZ_TESTS names what runs: `usual` (the default), `nightly` (the rest) or `all`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import pytest

ASKED = os.environ.get("ISOVIZ_TESTS", "usual")
ALL = ASKED != "usual"


def cases(names: Iterable[str], always: Collection[str]) -> list[object]:
    """Parameters of a test: those that are not in `always` are nightly."""
    return [name if name in always else pytest.param(name, marks=pytest.mark.nightly) for name in names]
