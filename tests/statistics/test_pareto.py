"""The Pareto front against its definition."""

from __future__ import annotations

import random

import pytest

from isoviz.statistics import front


def dominated(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return other[0] >= one[0] and other[1] >= one[1] and other != one


@pytest.mark.parametrize("seed", range(20))
def test_no_point_of_the_front_is_dominated_and_all_others_are(seed: int) -> None:
    chance = random.Random(seed)
    points = [(chance.randrange(5), chance.randrange(5)) for _ in range(chance.randrange(12))]
    on_front = front(points)
    expected = {at for at, one in enumerate(points) if not any(dominated(one, other) for other in points)}
    assert set(on_front) == expected and len(on_front) == len(expected)
    assert [points[at][0] for at in on_front] == sorted(points[at][0] for at in on_front)
