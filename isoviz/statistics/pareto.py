"""The Pareto front: points that no other point beats in both coordinates."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points that no other point dominates (at least as large in both coordinates, larger in one), sorted by the
    first coordinate. Equal points are all on the front.
    """
    order = sorted(range(len(points)), key=lambda at: (-points[at][0], -points[at][1]))
    places: list[int] = []
    for at in order:
        last = points[places[-1]] if places else None
        if last is None or points[at][1] > last[1] or points[at] == last:
            places.append(at)
    return places[::-1]
