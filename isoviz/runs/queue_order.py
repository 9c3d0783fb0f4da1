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

    A run that passes another run takes its priority. No time becomes later than the existing ones, except for a run moved behind all
    others of its priority.

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
    position = [place.id for place in peers].index(run_id)
    if position == 0:
        return [peers[0]._replace(queued=peers[1].queued - _GAP)]
    if position == len(peers) - 1:
        return [peers[-1]._replace(queued=peers[-2].queued + _GAP)]
    # Between two runs: move those in front, because runs launched together have the same time.
    changed, limit = [], peers[position + 1].queued
    for place in reversed(peers[: position + 1]):
        limit -= _GAP
        if place.queued > limit or place.id == run_id:
            changed.append(place._replace(queued=limit))
        else:
            break
        limit = changed[-1].queued
    return changed
