"""The sequential test of a bounded mean: its evidence is a fair bet under the null, and it finds a late change."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isoviz.statistics.betting import MeanAbove


@pytest.mark.parametrize("limit", [0.25, 0.5, 0.9])
def test_the_expected_evidence_is_one_at_the_limit(limit: float) -> None:
    """Exact: the sum over all outcomes of four coin tosses in two looks, weighted with their probabilities."""
    expected = 0.0
    for tosses in itertools.product((0.0, 1.0), repeat=4):
        test = MeanAbove(limit)
        test.update(tosses[:2])
        probability = float(np.prod([limit if toss else 1 - limit for toss in tosses]))
        expected += probability * test.update(tosses[2:])
    assert expected == pytest.approx(1.0, abs=1e-12)


def test_the_evidence_is_the_weighted_sum_over_all_starts() -> None:
    """Against plain loops over starts and stakes."""
    generator = np.random.default_rng(3)
    looks = [generator.random(3) for _ in range(6)]
    test = MeanAbove(0.4)
    for look in looks:
        test.update(look)
    expected = 1 / 7
    for start in range(1, 7):
        for stake in (0.1, 0.3, 0.6, 0.95):
            product = 1.0
            for x in np.concatenate(looks[start - 1 :]):
                product *= 1 + stake / 0.4 * (x - 0.4)
            expected += product / 4 / (start * (start + 1))
    assert test.evidence == pytest.approx(expected, rel=1e-12)


def test_false_alarms_stay_below_the_rate_where_the_mean_is_the_limit() -> None:
    """1,000 sequences of 300 looks; at a rate of 5 %, more than 72 alarms have a probability below 0.1 %."""
    generator = np.random.default_rng(0)
    alarms = 0
    for _ in range(1000):
        test = MeanAbove(0.9)
        alarms += any(test.update(look) >= 20 for look in (generator.random((300, 8)) < 0.9).astype(float))
    assert alarms <= 72


def test_a_late_change_is_found_soon() -> None:
    test = MeanAbove(0.25)
    generator = np.random.default_rng(0)
    for _ in range(5000):
        test.update(generator.random(8) * 0.1)
    delay = next(look for look in range(1, 100) if test.update(np.full(8, 0.5)) >= 200)
    assert delay <= 12


def test_no_observation_changes_nothing() -> None:
    test = MeanAbove(0.5)
    test.update([1.0])
    before = test.evidence
    assert test.update([]) == before
