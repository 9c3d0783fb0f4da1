"""Which tests `make test` leaves to `make test-all`: the rest of slow matrices, each of which keeps a case in `make test`.

The environment variable ISOVIZ_TESTS names what runs: `usual` (the default), `nightly` (the rest) or `all`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

ASKED = os.environ.get("ISOVIZ_TESTS", "usual")
ALL = ASKED != "usual"


def cases(values: Iterable[Any], always: Collection[Any]) -> list[object]:
    """Parameters of a test, or tuples of them: those that are not in `always` are nightly."""
    tuples = {value: value if isinstance(value, tuple) else (value,) for value in values}
    return [v if v in always else pytest.param(*parts, marks=pytest.mark.nightly) for v, parts in tuples.items()]
