"""Retrieval against scikit-learn (ties included), against trec_eval, and against every order of tied documents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import pytrec_eval
from numpy.typing import NDArray
from sklearn.metrics import ndcg_score

from isoviz.readouts import Relevance
from isoviz.readouts.image import Image
from isoviz.readouts.retrieval import RECALLS, measure

QUERIES, DOCUMENTS, D = 25, 150, 8


def made(seed: int, *, whole_numbers: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64], Relevance]:
    """Vectors, the matrix of grades, and the same as `Relevance`; whole numbers give many equal scores."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(QUERIES + DOCUMENTS, D)) * rng.uniform(0.5, 2.0, (QUERIES + DOCUMENTS, 1))
    if whole_numbers:
        points = rng.integers(-1, 2, (QUERIES + DOCUMENTS, D)).astype(float)
        points[:, 0] = 1.0  # none of length 0
    grades = np.zeros((QUERIES, DOCUMENTS))
    for row in grades[1:]:  # the first query has no relevant document
        row[rng.choice(DOCUMENTS, rng.integers(1, 14), replace=False)] = 1 + rng.integers(0, 3)
    query, document = np.nonzero(grades)
    places = np.arange(QUERIES + DOCUMENTS)
    return points, grades, Relevance(places[:QUERIES], places[QUERIES:], query, document, grades[query, document])


def scores_of(points: NDArray[np.float64]) -> NDArray[np.float64]:
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(unit[:QUERIES] @ unit[QUERIES:].T)


def test_without_ties_everything_equals_trec_eval():
    points, grades, relevance = made(7)
    scores = scores_of(points)
    qrels = {str(q): {str(d): int(g) for d, g in enumerate(row) if g} for q, row in enumerate(grades) if row.any()}
    ranked = {q: {str(d): float(s) for d, s in enumerate(scores[int(q)])} for q in qrels}
    requested = {"ndcg_cut_10", "recall_1,10,100", "recip_rank_cut_10", "recip_rank"}
    evaluated = pytrec_eval.RelevanceEvaluator(qrels, requested - {"recip_rank_cut_10"}).evaluate(ranked)
    measured = measure(Image(points), relevance)
    mean = {
        measure_: np.mean([evaluation[measure_] for evaluation in evaluated.values()])
        for measure_ in next(iter(evaluated.values()))
    }
    assert measured["ndcg_cosine"].value == pytest.approx(mean["ndcg_cut_10"], abs=1e-6)
    for k in RECALLS:
        assert measured[f"recall{k}_cosine"].value == pytest.approx(mean[f"recall_{k}"], abs=1e-6)
    cut = [
        evaluation["recip_rank"] if evaluation["recip_rank"] > 1 / 10.5 else 0.0 for evaluation in evaluated.values()
    ]
    assert measured["mrr_cosine"].value == pytest.approx(np.mean(cut), abs=1e-6)


def test_tied_documents_count_as_the_mean_of_their_orders():
    # three documents score alike, one above and one below; relevant: two of the three, and the last
    points = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 3.0], [1.0, 3.0], [1.0, 3.0], [0.5, 9.0]])
    relevance = Relevance(
        np.array([0]), np.arange(1, 6), np.array([0, 0, 0]), np.array([1, 3, 4]), np.array([1.0, 2.0, 1.0])
    )
    grades = dict(zip([1, 3, 4], [1.0, 2.0, 1.0], strict=True))
    ndcgs, reciprocals, firsts = [], [], []
    ideal = 2.0 + 1.0 / np.log2(3) + 1.0 / np.log2(4)
    for order in itertools.permutations([1, 2, 3]):
        ranking = [0, *order, 4]
        ndcgs.append(sum(grades.get(one, 0.0) / np.log2(index + 2) for index, one in enumerate(ranking)) / ideal)
        reciprocals.append(1 / (1 + min(index for index, one in enumerate(ranking) if one in grades)))
        firsts.append(float(ranking[0] in grades) / 3)
    measured = measure(Image(points), relevance)
    assert measured["ndcg_cosine"].value == pytest.approx(np.mean(ndcgs))
    assert measured["mrr_cosine"].value == pytest.approx(np.mean(reciprocals))
    assert measured["recall1_cosine"].value == pytest.approx(np.mean(firsts))
    assert measured["recall10_cosine"].value == 1.0


def test_vectors_that_have_become_equal_are_worth_chance_in_any_order_of_the_file():
    points, grades, relevance = made(9)
    points[:] = points[0]
    expected = ndcg_score(grades[1:], np.zeros((QUERIES - 1, DOCUMENTS)), k=10)
    assert measure(Image(points), relevance)["ndcg_cosine"].value == pytest.approx(expected, abs=1e-6)
    points[:] = 0.0
    assert measure(Image(points), relevance)["ndcg_cosine"].value == pytest.approx(expected, abs=1e-6)
