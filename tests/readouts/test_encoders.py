"""Encoders on one search: numbers against plain loops, verdicts in each direction, matching of rows, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import isoviz
from isoviz.errors import InputError
from isoviz.readouts import encoders
from isoviz.readouts.slices import Slicing
from isoviz.vectors import VectorSet
from tests.readouts.searches import Made, made


def by_hand(search: Made, noise: float) -> np.ndarray:
    """(q, 3) nDCG@10, recall@10 and MRR@10, by loops over sorted rankings."""
    documents, questions = (part.astype(float) for part in search.seen(noise))
    rows = []
    for number, question in enumerate(questions):
        cosines = [one @ question / np.linalg.norm(one) / np.linalg.norm(question) for one in documents]
        ranking = sorted(range(len(documents)), key=lambda place: -cosines[place])[:10]
        grades = {int(place): int(grade) for row, place, grade in search.relevance if row == number}
        gain = sum(grades.get(place, 0) / math.log2(rank + 2) for rank, place in enumerate(ranking))
        ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(grades.values(), reverse=True)))
        found = [rank for rank, place in enumerate(ranking) if place in grades]
        rows.append((gain / ideal, len(found) / len(grades), 1 / (found[0] + 1) if found else 0.0))
    return np.array(rows)


def test_numbers_equal_plain_loops() -> None:
    search = made(seed=1)
    found = isoviz.compare({"a": search.seen(0.0), "b": search.seen(0.3)}, search.relevance)
    a, b = by_hand(search, 0.0), by_hand(search, 0.3)
    for column, name in enumerate(encoders.QUALITIES):
        for encoder, values in zip(found.encoders, (a, b), strict=True):
            assert encoder.quality[name][0] == pytest.approx(values[:, column].mean(), abs=1e-6)
        assert found.differences[0].change[name][0] == pytest.approx((b - a)[:, column].mean(), abs=1e-6)
    change, one = (b - a)[:, 0], found.differences[0]
    assert (one.wins, one.ties, one.losses) == (
        (change > 1e-9).sum(),
        (abs(change) <= 1e-9).sum(),
        (change < -1e-9).sum(),
    )
    assert [question.after - question.before for question in one.worse] == pytest.approx(sorted(change)[:10], abs=1e-6)
    worst = one.worse[0]
    documents, questions = search.seen(0.3)
    row = int(worst.question) - 1
    cosines = documents @ questions[row] / np.linalg.norm(documents, axis=1) / np.linalg.norm(questions[row])
    assert [hit.document for hit in worst.hits_after] == [str(place + 1) for place in np.argsort(-cosines)[:3]]
    assert [hit.cosine for hit in worst.hits_after] == pytest.approx(np.sort(cosines)[::-1][:3], abs=1e-5)


def test_without_shared_documents_it_is_the_paired_t_test() -> None:
    search = made(seed=2)
    relevance = search.relevance[search.relevance[:, 2] == 2]
    found = isoviz.compare({"a": search.seen(0.0), "b": search.seen(0.4), "c": search.seen(0.5)}, relevance)
    assert found.units == found.questions == 60
    alone = search._replace(relevance=relevance)
    first = by_hand(alone, 0.0)[:, 0]
    tests = [stats.ttest_rel(by_hand(alone, noise)[:, 0], first) for noise in (0.4, 0.5)]
    for one, test in zip(found.differences, tests, strict=True):
        assert one.p == pytest.approx(test.pvalue, rel=1e-4)
        assert one.change["ndcg10"][1:] == pytest.approx(tuple(test.confidence_interval(0.95)), abs=1e-5)
    low, high = sorted(test.pvalue for test in tests)
    assert sorted(one.p_holm or 0 for one in found.differences) == pytest.approx(
        [2 * low, max(2 * low, high)], rel=1e-4
    )


def test_slices_of_questions_are_compared_with_the_rest() -> None:
    search = made(seed=2)
    relevance = search.relevance[search.relevance[:, 2] == 2]
    codes = np.arange(60) % 3
    by = Slicing(codes, ["short", "middle", "long"])
    found = isoviz.compare({"a": search.seen(0.0), "b": search.seen(0.4)}, relevance, by=by)
    alone = search._replace(relevance=relevance)
    change = by_hand(alone, 0.4)[:, 0] - by_hand(alone, 0.0)[:, 0]
    assert [one.slice for one in found.slices] == by.names
    for code, one in enumerate(found.slices):
        own = change[codes == code]
        ends = stats.ttest_1samp(own, 0).confidence_interval(0.95)
        assert one.measure == "b, change of nDCG@10" and one.n == 20
        assert (one.value, one.rest) == pytest.approx((own.mean(), change[codes != code].mean()), abs=1e-6)
        assert (one.low, one.high) == pytest.approx(tuple(ends), abs=1e-5)
    with pytest.raises(InputError, match="by: slices are of questions"):
        isoviz.compare({name: (search.seen(0.0)[0], None) for name in "ab"}, by=by)


def verdict(change: np.ndarray, groups: np.ndarray | None = None, margin: float = 0.01) -> encoders.Difference:
    scores = {"a": np.full((len(change), 3), 0.5), "b": 0.5 + np.repeat(change[:, None], 3, axis=1)}
    return encoders.judge(scores, np.arange(len(change)) if groups is None else groups, margin)[0]


@pytest.mark.parametrize(
    ("change", "outcome", "words"),
    [
        (np.tile([0.1, 0.0], 100), "higher", "5 points more"),
        (np.tile([-0.1, 0.0], 100), "lower", "5 points less"),
        (np.zeros(1000), "no harm", "no harm above your margin of 1 point"),
        (np.zeros(100), "cannot tell", "3 points is not excluded"),
        (np.tile([0.1, -0.1], 100), "cannot tell", "independent questions would decide"),
        (np.full(5, 0.4), "cannot tell", ""),
    ],
)
def test_verdicts(change: np.ndarray, outcome: str, words: str) -> None:
    one = verdict(change)
    assert one.outcome == outcome and words in one.sentence


def test_a_small_certain_loss_is_lower_and_harmless() -> None:
    one = verdict(np.tile([-0.004, -0.002], 2_000))
    assert one.outcome == "lower" and one.harmless and "Still no harm above your margin" in one.sentence


def test_the_bound_of_rare_losses_is_that_of_clopper_and_pearson() -> None:
    for losses in (0, 3):
        change = np.r_[np.full(losses, -1.0), np.zeros(200 - losses)]
        exact = stats.beta.ppf(0.95, losses + 1, 200 - losses)
        assert verdict(change).at_most == pytest.approx(exact, rel=0.05)


def test_questions_of_one_document_are_one_unit() -> None:
    change = np.random.default_rng(0).normal(0.02, 0.1, 30)
    alone, repeated = verdict(change), verdict(np.repeat(change, 20), np.repeat(np.arange(30), 20))
    assert repeated.change["ndcg10"] == pytest.approx(alone.change["ndcg10"])
    assert repeated.p == pytest.approx(alone.p) and repeated.outcome == alone.outcome


def test_rows_are_matched_by_id() -> None:
    search = made(seed=4)
    ids = [f"d{n}" for n in range(150)] + [f"q{n}" for n in range(60)]
    pairs = pd.DataFrame(
        [(f"q{row}", f"d{place}", grade) for row, place, grade in search.relevance], columns=["left", "right", "score"]
    )

    def held(noise: float, order: np.ndarray) -> VectorSet:
        points = np.concatenate(search.seen(noise))[order]
        return VectorSet(points, pd.DataFrame({"id": np.array(ids, object)[order]}), pairs, "relevance")

    shuffled = np.random.default_rng(0).permutation(210)
    plain = isoviz.compare({"a": search.seen(0.0), "b": search.seen(0.3)}, search.relevance)
    found = encoders.of_sets({"a": held(0.0, np.arange(210)), "b": held(0.3, shuffled)})
    assert found.sentences == plain.sentences and found.differences[0].worse[0].question.startswith("q")
    fewer = encoders.of_sets({"a": held(0.0, np.arange(210)), "b": held(0.3, shuffled[shuffled != 209])})
    assert fewer.questions == 59 and "1 ids are not in all files and left out, such as q59." in fewer.notes
    alone = encoders.of_sets({name: VectorSet(search.seen(0.0)[0], pd.DataFrame(index=range(150))) for name in "ab"})
    assert alone.differences[0].neighbours == (1, 1, 1) and alone.questions == 0


D = np.ones((3, 2)) * [[1], [2], [3]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: isoviz.compare({"a": (D, D)}, [[0, 0]]), "encoders: give two to 6"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D[:2])}, [[0, 0]]), "encoders: all need the same documents"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D[:, :1])}, [[0, 0]]), "encoders: 'b' needs"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D * np.nan)}, [[0, 0]]), "encoders: 'b' needs at least 2"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D)}, [[0, 3]]), "relevance: documents are numbered from 0 to 2"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D)}, [[0, 0], [0, 0]]), "relevance: the same question"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D)}, [[0, 0]]), "relevance: at least 2 questions"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D)}), "relevance: questions and relevance go together"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D)}, [0, 0]), "relevance: expected rows"),
        (lambda: isoviz.compare({"a": (D, D), "b": (D, D)}, [[0, 0]], margin=2), "margin: "),
    ],
)
def test_bad_input_has_one_clear_line(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
