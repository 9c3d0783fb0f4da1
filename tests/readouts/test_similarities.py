"""CSLS, rank and L1 similarity by loops, with few queries, in rotated coordinates; and the share of the top dimension."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import ndcg_score

from isoviz.posthoc.factored import FactoredCloud
from isoviz.readouts import Annotations, RatedPairs
from isoviz.readouts.image import Image
from isoviz.readouts.reading import measure
from isoviz.whatif.images import image_of
from tests.metrics.reference_clouds import equal_but_for_rounding, equally_far
from tests.readouts.test_retrieval import QUERIES, made

RNG = np.random.default_rng(6)


def by_loops(points: NDArray[np.float64], queries: int, name: str) -> NDArray[np.float64]:
    """(q, c) similarities, one pair at a time."""
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    left, right = unit[:queries], unit[queries:]
    scores = np.empty((len(left), len(right)))
    for i, query in enumerate(left):
        for j, document in enumerate(right):
            if name == "rank":
                scores[i, j] = stats.spearmanr(query, document).statistic
            elif name == "l1":
                scores[i, j] = -sum(abs(a - b) for a, b in zip(query, document, strict=True))
            else:  # Conneau et al. 2018, section 2.3, as in MUSE: both neighbourhoods
                of_query = np.sort(right @ query)[::-1][:10].mean()
                of_document = np.sort(left @ document)[::-1][:10].mean()
                scores[i, j] = 2 * query @ document - of_query - of_document
    return scores


@pytest.mark.parametrize("name", ["csls", "rank", "l1"])
def test_search_matches_loops(name: str) -> None:
    points, grades, relevance = made(21)
    scores = by_loops(points, QUERIES, name)
    measured = measure(Image(points), Annotations(queries=relevance), [f"ndcg_{name}", f"recall10_{name}"])
    ties = np.round(scores, 6)  # ranks of eight numbers leave few different correlations
    assert measured[f"ndcg_{name}"].value == pytest.approx(ndcg_score(grades[1:], ties[1:], k=10), abs=1e-6)
    if name == "csls":
        first = np.argsort(-scores, axis=1)[:, :10]
        recall = [np.isin(np.flatnonzero(row), top).mean() for row, top in zip(grades[1:], first[1:], strict=True)]
        assert measured["recall10_csls"].value == pytest.approx(np.mean(recall), abs=1e-6)


def test_pairs_match_scipy_also_after_a_rotation_of_the_coordinates() -> None:
    points = RNG.normal(size=(60, 7)) * np.geomspace(5, 0.2, 7) + 1.0
    pairs = RatedPairs(np.arange(0, 60, 2), np.arange(1, 60, 2), RNG.normal(size=30))
    slugs = ["spearman_rank", "spearman_l1", "top_share"]
    of_pairs = list(zip(points[pairs.left], points[pairs.right], strict=True))
    ranks = [stats.spearmanr(a, b).statistic for a, b in of_pairs]
    l1 = [-np.abs(a / np.linalg.norm(a) - b / np.linalg.norm(b)).sum() for a, b in of_pairs]
    variances = points.var(axis=0)
    expected = [*(stats.spearmanr(pairs.score, s).statistic for s in (ranks, l1)), variances.max() / variances.sum()]
    principal = FactoredCloud.of_points(points, points, 1e-7).along("principal")
    for image in (Image(points), image_of(principal)):
        measured = measure(image, Annotations(pairs=pairs), slugs)
        assert [measured[slug].value for slug in slugs] == pytest.approx(expected, abs=1e-5)


def test_the_top_share_without_each_row() -> None:
    points = RNG.normal(size=(40, 5)) * np.array([3, 1, 1, 1, 1])
    without = []
    for row in range(40):
        variances = np.delete(points, row, axis=0).var(axis=0)
        without.append(variances.max() / variances.sum())
    statistic = measure(Image(points), Annotations(), ["top_share"])["top_share"]
    influences = 39 * (np.mean(without) - np.array(without))
    counts = np.random.default_rng(0).multinomial(40, np.full(40, 1 / 40), size=20)
    assert statistic.resampled(counts) == pytest.approx(statistic.value + counts @ influences / 40, abs=1e-5)
    for equal in (np.ones((9, 3)), equal_but_for_rounding(9, 3)):
        assert measure(Image(equal), Annotations(), ["top_share"])["top_share"].value is None


@pytest.mark.parametrize(
    "points", [equally_far(30, 64) - equally_far(30, 64).mean(axis=0), equal_but_for_rounding(30, 64)]
)
def test_similarities_that_differ_by_rounding_correlate_with_nothing(points: NDArray[np.floating]) -> None:
    pairs = RatedPairs(*np.triu_indices(30, 1), RNG.normal(size=435))
    measured = measure(Image(points), Annotations(pairs=pairs), ["spearman_cosine", "pearson_cosine", "spearman_dot"])
    assert all(one.value is None for one in measured.values())


def test_ranks_beat_cosine_where_one_dimension_dominates() -> None:
    """The claim of Parupudi 2026: a gain where one dimension holds most variance, none in an isotropic cloud."""
    left = RNG.normal(size=(400, 16))
    right = left + 0.9 * RNG.normal(size=(400, 16))
    closeness = (left * right).sum(axis=1)
    pairs = RatedPairs(np.arange(400), 400 + np.arange(400), closeness + RNG.normal(size=400))
    gains = []
    for size in (1.0, 30.0):
        points = np.concatenate([left, right]) + 0.0
        points[:, 0] = RNG.normal(size=800) * size
        known = measure(Image(points), Annotations(pairs=pairs), ["spearman_cosine", "spearman_rank"])
        gains.append(known["spearman_rank"].value - known["spearman_cosine"].value)
    assert gains[0] < 0.02 and gains[1] > 0.1
