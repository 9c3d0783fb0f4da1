"""Points inside a line, against winding by hand and a loop; the line as text."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.exploring import maps

STAR = [(0, 3), (2, -3), (-3, 1), (3, 1), (-2, -3)]
"""A five-pointed star drawn in one line: its middle is gone around twice."""


def test_known_places() -> None:
    square = [(0, 0), (2, 0), (2, 2), (0, 2)]
    points = [(1, 1), (3, 1), (1, -1), (1.999, 0.001), (-1e-9, 1)]
    assert maps.inside(points, square).tolist() == [True, False, False, True, False]
    assert maps.inside([(0, 2.5), (0, 0)], STAR).tolist() == [True, False]
    horseshoe = [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)]
    assert maps.inside([(0.5, 2), (1.5, 2), (2.5, 2), (1.5, 0.5)], horseshoe).tolist() == [True, False, True, True]


def test_shared_edge_belongs_to_one_side() -> None:
    left, right = [(0, 0), (1, 0), (1, 1), (0, 1)], [(1, 0), (2, 0), (2, 1), (1, 1)]
    edge = [(1, y) for y in (0.0, 0.25, 0.5)]
    both = maps.inside(edge, left).astype(int) + maps.inside(edge, right)
    assert both.tolist() == [1, 1, 1]


def test_agrees_with_counting_crossings_one_by_one() -> None:
    generator = np.random.default_rng(0)
    points, corners = generator.uniform(-3, 3, (500, 2)), generator.uniform(-3, 3, (9, 2))
    expected = []
    for x, y in points:  # a ray to the right, solved edge by edge as two equations
        crossings = 0
        for one, other in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            edge = other - one
            if abs(edge[1]) > 1e-12:
                share = (y - one[1]) / edge[1]
                crossings += bool(0 <= share < 1 and one[0] + share * edge[0] > x)
        expected.append(crossings % 2 == 1)
    assert maps.inside(points, corners).tolist() == expected


def test_long_line_is_shortened_and_still_holds_the_same() -> None:
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    lasso = np.stack([50 + 30 * np.cos(angle), 20 + 10 * np.sin(angle)], axis=1)
    short = maps.shortened_line(lasso)
    assert len(short) == maps.MOST_CORNERS
    points = np.random.default_rng(1).uniform((0, 0), (100, 40), (2_000, 2))
    assert (maps.inside(points, lasso) != maps.inside(points, short)).mean() < 0.005
    assert maps.line_of(maps.line_text(short)) == short


@pytest.mark.parametrize("text", ["", "1,2", "1,2;3,4", "a,b;c,d;e,f", "1,2;3;4,5", "1,nan;2,3;4,5", "1,2;3,4;5,inf"])
def test_text_that_is_no_line(text: str) -> None:
    assert maps.line_of(text) is None


def test_two_corners_hold_nothing() -> None:
    with pytest.raises(InputError, match="at least 3 corners"):
        maps.inside([(0, 0)], [(0, 0), (1, 1)])
