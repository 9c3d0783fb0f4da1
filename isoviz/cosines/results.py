"""Rulers of stored sets, on disk."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from isoviz.jobs.kinds import GIB
from isoviz.jobs.results import ResultStore

STORE: Final = ResultStore("rulers", lambda: GIB // 4, most=1_000)
"""Each result has the facts `request` (with the key of the set as `vectors`) and `ruler`, as JSON."""


def forget(sets: Collection[str]) -> None:
    """Delete the rulers of deleted sets."""
    for key in STORE.keys(lambda facts: facts["request"]["vectors"] in sets):
        STORE.forget(key)
