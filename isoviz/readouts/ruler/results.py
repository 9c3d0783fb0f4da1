"""Rulers and comparisons of stored sets, on disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from isoviz.jobs.kinds import GIB
from isoviz.jobs.results import ResultStore

STORE: Final = ResultStore("rulers", lambda: GIB // 4, most=1_000)
"""Each result has the facts `request` (with the key or keys of the sets as `vectors`) and `ruler` or `comparison`, as JSON."""


def forget(sets: Collection[str]) -> None:
    """Delete what was measured on deleted sets."""

    def about(facts: Mapping[str, Any]) -> bool:
        named = facts["request"]["vectors"]
        return named in sets if isinstance(named, str) else not set(named).isdisjoint(sets)

    for key in STORE.keys(about):
        STORE.forget(key)
