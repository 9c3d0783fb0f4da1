"""Retrieval against scikit-learn (ties included), against trec_eval, and against every order of tied documents."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import ndcg_score

from isoviz.readouts import Relevance
from isoviz.readouts.image import Image
from isoviz.readouts.retrieval import RECALLS, measure
from isoviz.statistics.paired_bootstrap import Statistic

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


def scores_of(points: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    q, d = points[:QUERIES], points[QUERIES:]
    if name == "cosine":
        q, d = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (q, d))
    return np.asarray(q @ d.T)


@pytest.mark.parametrize("name", ["cosine", "dot"])
@pytest.mark.parametrize("whole_numbers", [False, True])
def test_ndcg_equals_that_of_scikit_learn(name, whole_numbers):
    points, grades, relevance = made(5, whole_numbers=whole_numbers)
    scores = np.round(scores_of(points, name), 9)
    measured = measure(Image(points), relevance)[f"ndcg_{name}"]
    assert measured.n == QUERIES - 1
    assert measured.value == pytest.approx(ndcg_score(grades[1:], scores[1:], k=10), abs=1e-6)


@pytest.mark.parametrize("name", ["cosine", "dot"])
def test_without_ties_everything_equals_trec_eval(name):
    points, grades, relevance = made(7)
    scores = scores_of(points, name)
    qrels = {str(q): {str(d): int(g) for d, g in enumerate(row) if g} for q, row in enumerate(grades) if row.any()}
    ranked = {q: {str(d): float(s) for d, s in enumerate(scores[int(q)])} for q in qrels}
    requested = {"ndcg_cut_10", "recall_1,10,100", "recip_rank_cut_10", "recip_rank"}
    evaluated = pytrec_eval.RelevanceEvaluator(qrels, requested - {"recip_rank_cut_10"}).evaluate(ranked)
    measured = measure(Image(points), relevance)
    mean = {
        measure_: np.mean([evaluation[measure_] for evaluation in evaluated.values()])
        for measure_ in next(iter(evaluated.values()))
    }
    assert measured[f"ndcg_{name}"].value == pytest.approx(mean["ndcg_cut_10"], abs=1e-6)
    for k in RECALLS:
        assert measured[f"recall{k}_{name}"].value == pytest.approx(mean[f"recall_{k}"], abs=1e-6)
    cut = [
        evaluation["recip_rank"] if evaluation["recip_rank"] > 1 / 10.5 else 0.0 for evaluation in evaluated.values()
    ]
    assert measured[f"mrr_{name}"].value == pytest.approx(np.mean(cut), abs=1e-6)


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
    for name in ("dot", "cosine"):
        assert measured[f"ndcg_{name}"].value == pytest.approx(np.mean(ndcgs))
        assert measured[f"mrr_{name}"].value == pytest.approx(np.mean(reciprocals))
        assert measured[f"recall1_{name}"].value == pytest.approx(np.mean(firsts))
        assert measured[f"recall10_{name}"].value == 1.0


def test_vectors_that_have_become_equal_are_worth_chance_in_any_order_of_the_file():
    points, grades, relevance = made(9)
    points[:] = points[0]
    expected = ndcg_score(grades[1:], np.zeros((QUERIES - 1, DOCUMENTS)), k=10)
    assert measure(Image(points), relevance)["ndcg_cosine"].value == pytest.approx(expected, abs=1e-6)
    points[:] = 0.0
    assert measure(Image(points), relevance)["ndcg_cosine"].value == pytest.approx(expected, abs=1e-6)


def test_hubness_counts_how_often_each_document_is_found():
    points, _, relevance = made(11)
    scores = scores_of(points, "cosine")
    nearest = np.argsort(-scores, axis=1)[:, :10]
    counts = np.bincount(nearest.ravel(), minlength=DOCUMENTS)
    measured = measure(Image(points), relevance)
    assert measured["hubness_cosine"].value == pytest.approx(stats.skew(counts), abs=1e-9)
    assert measured["never_cosine"].value == pytest.approx(np.mean(counts == 0))
    assert measured["hubness_cosine"].n == DOCUMENTS


def test_documents_tied_at_the_last_place_are_found_by_chance():
    points, _, relevance = made(12, whole_numbers=True)
    scores, generator = np.round(scores_of(points, "dot"), 9), np.random.default_rng(0)
    found = np.zeros((400, DOCUMENTS))
    for counts in found:
        np.add.at(counts, np.lexsort((generator.random(scores.shape), -scores))[:, :10].ravel(), 1)
    measured = measure(Image(points), relevance, ["hubness_dot", "never_dot"])
    assert measured["hubness_dot"].value == pytest.approx(stats.skew(found.mean(axis=0)), abs=0.05)
    assert measured["never_dot"].value == pytest.approx(np.mean(found == 0), abs=0.01)
    order = generator.permutation(DOCUMENTS)
    moved = replace(relevance, documents=relevance.documents[order], document=np.argsort(order)[relevance.document])
    for slug, one in measure(Image(3 * points), moved, ["hubness_dot", "never_dot"]).items():
        assert one.value == pytest.approx(measured[slug].value, rel=1e-6), slug

    points[:] = points[0]
    equal = measure(Image(points), relevance)
    assert equal["hubness_cosine"].value is None
    assert equal["never_cosine"].value == pytest.approx((1 - 10 / DOCUMENTS) ** QUERIES)


@pytest.mark.parametrize("whole_numbers", [False, True])
def test_intervals_of_hubness_count_which_documents_take_the_place_of_others(whole_numbers):
    points, _, _ = made(12, whole_numbers=whole_numbers)
    one = np.array([0])

    def hubness(documents: NDArray[np.int64]) -> Statistic:
        relevance = Relevance(np.arange(QUERIES), documents, one, one, one + 1.0)
        return measure(Image(points), relevance, ["hubness_dot"])["hubness_dot"]

    rows = QUERIES + np.arange(DOCUMENTS)
    without = np.array([hubness(np.delete(rows, place)).value for place in range(DOCUMENTS)])
    counts = np.random.default_rng(0).multinomial(DOCUMENTS, np.full(DOCUMENTS, 1 / DOCUMENTS), size=20)
    every, influences = hubness(rows), (DOCUMENTS - 1) * (without.mean() - without)
    assert every.resampled(counts) == pytest.approx(every.value + counts @ influences / DOCUMENTS, abs=1e-5)
