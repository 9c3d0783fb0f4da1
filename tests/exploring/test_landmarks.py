"""Clusters of a map, their words, and its density lines, on maps made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.exploring import maps

RANDOM = np.random.default_rng(0)
GROUPS = [(0, 0, 120), (9, 0, 60), (0, 9, 30)]
MAP = np.concatenate([RANDOM.normal((x, y), 0.5, size=(count, 2)) for x, y, count in GROUPS])
TRUTH = np.repeat([0, 1, 2], [count for *_, count in GROUPS])


def test_clusters_are_ordered_by_size_and_the_rest_has_none() -> None:
    labels = maps.clusters(MAP)
    for group in range(3):
        assigned = labels[group == TRUTH]
        assert set(assigned) <= {group, -1} and (assigned == group).mean() > 0.8
    assert set(maps.clusters(MAP[:10])) == {-1}


def test_points_beyond_the_sample_join_their_nearest_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST_CLUSTERED", 100)
    labels = maps.clusters(MAP)
    assert len(labels) == len(MAP) and all(set(labels[group == TRUTH]) <= {group, -1} for group in range(3))


def test_words_weigh_by_hand() -> None:
    labels = np.array([0, 0, 1, -1])
    words = maps.distinguishing_words(["the cat cat", "the cat", "the dog dog", "bird"], labels)
    # cluster 0: cat 3/5 · log(1 + 4/3) > the 2/5 · log(1 + 4/3); the bird is in none
    assert words == ["cat, the", "dog, the"]
    assert maps.distinguishing_words(["! ?", "…"], np.array([0, 1])) == ["", ""]
    assert maps.distinguishing_words(["cat"], np.array([-1])) == []


@pytest.mark.parametrize("count", [400, 4_000])
def test_a_line_encloses_its_share_of_the_points(count: int) -> None:
    points = np.random.default_rng(1).normal(size=(count, 2)) * (1, 20)
    for share, lines in maps.density_lines(points):
        inside = np.zeros(count, dtype=bool)
        for line in lines:
            inside ^= maps.inside(points, line[:-1])
        assert inside.mean() == pytest.approx(share, abs=0.05)
    assert maps.density_lines(np.ones((50, 2))) == [] == maps.density_lines(points[:5])
