"""Where there is nothing to be found our tests seldom find it: the simulations of benchmarks/false_positives.py with fewer draws.

A bound is the promised rate and four standard errors of a share from that many draws.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
DRAWS = 2000


@pytest.fixture
def simulated(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("false_positives")


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def slack(draws: int, share: float = 0.05) -> float:
    return 4 * math.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize(("methods", "against_baseline"), [(9, True), (5, False)])
def test_holm_keeps_a_tables_rate(simulated, rng, n, methods, against_baseline):
    plain, corrected = simulated.familywise(methods, n, against_baseline, DRAWS, rng)
    assert corrected <= 0.05 + slack(DRAWS)
    assert plain > 0.1  # what it is there for


def test_rank_correlations_within_tasks(simulated, rng):
    assert simulated.rank(5, 1, 400, rng) <= 0.05 + slack(400)
    assert simulated.rank(4, 3, 100, rng) <= 0.05 + slack(100)


def test_students_interval_covers_and_the_bootstraps_do_not(simulated, rng):
    coverage = simulated.mean_coverage("normal", 5, 800, rng)
    assert coverage["Student's t"] == pytest.approx(0.95, abs=slack(800))
    assert coverage["percentile bootstrap"] < 0.9
    assert coverage["BCa bootstrap"] < 0.9


def test_the_interval_of_a_rank_correlation_covers(simulated, rng):
    assert simulated.rank_coverage(8, 0.5, 60, rng) >= 0.95 - slack(60)


def test_read_outs_whose_rows_affect_each_other(monkeypatch):
    """Two equal perturbations, in benchmarks/readout_errors.py."""
    monkeypatch.syspath_prepend(str(FOLDER))
    simulated, draws = importlib.import_module("readout_errors"), 150
    bound = 0.05 + slack(draws)
    alarms = simulated.rates(simulated.equal_noise, draws, ["random_pairs", "noise_floor", "nearest"])
    assert max(alarms.values()) <= bound
    coverage = simulated.rates(simulated.fresh_rows, draws, ["noise_floor", "nearest"])
    assert min(coverage.values()) >= 1 - bound
