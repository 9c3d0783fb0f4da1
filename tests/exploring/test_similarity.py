"""Debiased CKA against its definition in loops over four distinct rows, and what leaves both measures unchanged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from isoviz.exploring import similarity
from isoviz.exploring.similarity import matrix

random = np.random.default_rng(3)
X = random.normal(size=(9, 4)) * [3, 1, 1, 0.2] + 2
Y = X @ random.normal(size=(4, 3)) + 0.5 * random.normal(size=(9, 3)) - 5


def debiased_cka(x: np.ndarray, y: np.ndarray) -> float:
    return float(matrix([x], [y], "cka")[0, 0])


def hsic_by_hand(x: np.ndarray, y: np.ndarray) -> float:
    """The U-statistic: the mean over all ordered quadruples of distinct rows of k(i, j)·(m(i, j) + m(q, r) − 2·m(i, q))."""
    k, m = x @ x.T, y @ y.T
    terms = [k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q]) for i, j, q, r in itertools.permutations(range(len(x)), 4)]
    return float(np.mean(terms))


def test_cka_is_the_u_statistic() -> None:
    expected = hsic_by_hand(X, Y) / np.sqrt(hsic_by_hand(X, X) * hsic_by_hand(Y, Y))
    assert debiased_cka(X, Y) == pytest.approx(expected, rel=1e-10)
    assert abs(expected) < 0.999 and expected != 0


def test_axes_do_not_matter_and_small_samples_do_not_pretend() -> None:
    rotation = np.linalg.qr(random.normal(size=(4, 4)))[0]
    assert debiased_cka(X, 7 * X @ rotation + 100) == pytest.approx(1)
    unrelated = [debiased_cka(random.normal(size=(60, 300)), random.normal(size=(60, 300))) for _ in range(20)]
    assert abs(np.mean(unrelated)) < 0.02  # the biased estimate is about 0.83 here
    assert np.isnan(debiased_cka(X, np.full((9, 2), 0.1))) and np.isnan(debiased_cka(X[:3], X[:3]))


def test_neighbour_overlap_matches_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    a = random.normal(size=(80, 5))
    b = a + 0.5 * random.normal(size=(80, 5))
    sets = [
        NearestNeighbors(n_neighbors=11, metric="cosine").fit(points).kneighbors(points, return_distance=False)[:, 1:]
        for points in (a, b)
    ]
    expected = np.mean([len({*one} & {*other}) / 10 for one, other in zip(*sets, strict=True)])
    overlaps = matrix([a, b], [b], "neighbours")
    assert overlaps[:, 0] == pytest.approx([expected, 1]) and 0.1 < expected < 0.9
    monkeypatch.setattr(similarity, "MOST", 50)
    rows = similarity.sampled(80)
    np.testing.assert_allclose(matrix([a], [b], "cka")[0, 0], debiased_cka(a[rows], b[rows]))


@pytest.mark.parametrize("measure", ["cka", "neighbours"])
def test_half_of_a_symmetric_matrix_determines_it(measure: similarity.Measure) -> None:
    clouds = [random.normal(size=(60, 5)).astype(np.float16) for _ in range(3)]
    np.testing.assert_allclose(matrix(clouds, clouds, measure), matrix(clouds, list(clouds), measure), rtol=1e-12)
