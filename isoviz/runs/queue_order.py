"""The order of waiting runs: by priority, then by queueing time. A move may change both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Move = Literal["first", "up", "down", "last"]
Priority = Literal["high", "normal", "low"]

PRIORITIES: Final[Mapping[Priority, int]] = MappingProxyType({"high": 1, "normal": 0, "low": -1})
"""Priority level → value in the column `priority`."""
_GAP: Final = 1e-3
"""Seconds between two reordered runs."""


class Place(NamedTuple):
    """A waiting run with its sort keys."""

    id: str
    priority: int
    queued: float


def moved(waiting: Sequence[Place], run_id: str, move: Move) -> list[Place]:
    """The changes that move a run to the front, one earlier, one later or to the end.

    A run that passes another run takes its priority.

    Args:
        waiting: all waiting runs in order.
        run_id: the run to move.
    """
    before = [place.id for place in waiting].index(run_id)
    after = {"first": 0, "up": max(before - 1, 0), "down": min(before + 1, len(waiting) - 1), "last": len(waiting) - 1}
    if after[move] == before:
        return []
    priority = waiting[after[move]].priority
    order = [place for place in waiting if place.id != run_id]
    order.insert(after[move], waiting[before]._replace(priority=priority))
    peers = [place for place in order if place.priority == priority]
    times = sorted(place.queued for place in peers)  # no time becomes later, so that later runs stay behind
    for earlier in reversed(range(len(times) - 1)):
        times[earlier] = min(times[earlier], times[earlier + 1] - _GAP)
    return [place._replace(queued=time) for place, time in zip(peers, times, strict=True)]
