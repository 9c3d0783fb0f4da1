"""Moves in the queue, against a list that is reordered by hand."""

from __future__ import annotations

from typing import get_args

import pytest

from isoviz.errors import InputError, StoreError
from isoviz.runs.queue_order import PRIORITIES, Move, Place, moved
from isoviz.runs.store import Store
from tests.runs.conftest import Make


def ordered(places: list[Place]) -> list[str]:
    return [place.id for place in sorted(places, key=lambda place: (-place.priority, place.queued, place.id))]


def by_hand(order: list[str], run: str, move: Move) -> list[str]:
    index = order.index(run)
    rest = [entry for entry in order if entry != run]
    rest.insert({"first": 0, "up": max(0, index - 1), "down": index + 1, "last": len(rest)}[move], run)
    return rest


@pytest.mark.parametrize("move", get_args(Move))
@pytest.mark.parametrize("spread", [0.0, 1e-6, 1.0])
def test_every_move_from_every_place(move: Move, spread: float) -> None:
    """Runs launched together have the same time; the middle two have a higher priority than the last two."""
    now = 1_790_000_000.0
    levels = [1, 1, 0, 0, 0, -1, -1]
    for index in range(len(levels)):
        waiting = [Place(f"r{n}", level, now + n * spread) for n, level in enumerate(levels)]
        assert ordered(waiting) == [entry.id for entry in waiting]
        expected = by_hand([entry.id for entry in waiting], f"r{index}", move)
        changed = {entry.id: entry for entry in moved(waiting, f"r{index}", move)}
        assert ordered([changed.get(entry.id, entry) for entry in waiting]) == expected


def test_many_moves_to_the_same_place_keep_the_order() -> None:
    places = [Place(f"r{n:02d}", 0, 1_790_000_000.0) for n in range(20)]
    order = ordered(places)
    for step in range(60):
        run = order[(7 * step) % 20]
        changed = {entry.id: entry for entry in moved(places, run, "up")}
        places = sorted((changed.get(place.id, place) for place in places), key=lambda place: (place.queued, place.id))
        order = by_hand(order, run, "up")
        assert ordered(places) == order


def test_the_store_takes_runs_by_priority_and_then_as_moved(store: Store, config: Make) -> None:
    a, b, c, d = store.create([config(seed=seed) for seed in range(4)])
    store.set_priority([d], PRIORITIES["high"])
    store.set_priority([a], PRIORITIES["low"])
    assert [row.id for row in store.list(status="queued", order="queue")] == [d, b, c, a]
    store.move(c, "up")
    store.move(a, "first")
    assert [(row.id, row.position) for row in store.list(status="queued", order="queue")] == [
        (run, index) for index, run in enumerate((a, d, c, b), start=1)
    ]
    (late,) = store.create([config(seed=9)])
    claimed = [store.claim("me", "cpu") for _ in range(5)]
    assert [row.id for row in claimed if row] == [a, d, c, b, late]
    with pytest.raises(StoreError, match="cannot be moved: it is running"):
        store.move(a, "up")
    store.set_priority([a], PRIORITIES["low"])
    assert store.get(a).priority == PRIORITIES["high"], "of waiting runs only"
    with pytest.raises(InputError, match="priority: must be one of"):
        store.set_priority([a], 99)
    with pytest.raises(StoreError, match="no run 'gone'"):
        store.move("gone", "up")
