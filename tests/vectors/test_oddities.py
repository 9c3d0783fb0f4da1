"""Constant dimensions and copies of rows: found, and left out."""

import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.vectors import oddities

POINTS = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)


def test_both_are_found_and_left_out():
    points = POINTS.copy()
    points[[7, 20]] = points[3] * (1 + 1e-7)
    points[:, [2, 4]] = 0.5, -3.0
    points[[11, 12]] = 0
    ids = [f"r{row}" for row in range(30)]
    content = vectors.from_points(points, pd.DataFrame({"id": ids}), facts={"dimensions": list("abcdef")})
    assert oddities.found(content) == {"constant": [2, 4], "copies": [7, 20]}
    narrow = oddities.without(content, "constant")
    assert np.array_equal(narrow.points, points[:, [0, 1, 3, 5]]) and narrow.facts["dimensions"] == list("abdf")
    short = oddities.without(narrow, "copies")
    kept = [row for row in range(30) if row not in (7, 20)]
    assert np.array_equal(short.points, narrow.points[kept])
    assert list(short.columns["id"]) == [ids[row] for row in kept]
    assert oddities.found(short) == {}
    assert short.notes == (
        "dimensions that are constant are left out (2, 4), and later ones move up",
        "2 rows that repeat earlier ones are left out, and later rows move up",
    )


def test_rows_of_a_search_stay_and_two_of_each_are_left():
    content = vectors.from_points(np.repeat(POINTS[:2], 5, axis=0))
    assert oddities.found(content) == {"copies": [1, 2, 3, 4, 6, 7, 8, 9]}
    assert len(oddities.without(content, "copies").points) == 2
    with pytest.raises(InputError, match="fewer than two"):
        oddities.without(vectors.from_points(np.repeat(POINTS[:1], 5, axis=0)), "copies")
