"""Ratios of IsoScores of the same rows: the interval against deleting each row, and the sentence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isoviz.metrics import isoscore
from isoviz.readouts.isotropy import Isotropy, influence_of, ratio, sentence

RNG = np.random.default_rng(1)


def of(x: np.ndarray) -> Isotropy:
    centred = x - x.mean(0)
    squares = (centred**2).sum(1)
    return Isotropy(float(isoscore(x)), influence_of(centred, squares, np.cov(x.T), x.shape[1]), len(x))


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.8])
def test_the_interval_is_that_of_deleting_each_row(strength: float) -> None:
    x = RNG.normal(size=(300, 8)) * np.geomspace(4, 0.5, 8)
    y = x * np.geomspace(1, 8, 8) ** strength
    logs = np.array([np.log(isoscore(np.delete(y, i, 0)) / isoscore(np.delete(x, i, 0))) for i in range(300)])
    reach = stats.t.ppf(0.975, 299) * np.sqrt(299 / 300 * ((logs - logs.mean()) ** 2).sum())
    middle = np.log(isoscore(y) / isoscore(x))
    found = ratio(of(x), of(y))
    assert found is not None
    assert np.log(found) == pytest.approx([middle, middle - reach, middle + reach], rel=0.05, abs=1e-9)


def test_small_scores_are_judged_by_their_ratio() -> None:
    x = RNG.normal(size=(2000, 64)) * np.concatenate([[3.0], np.full(7, 1.0), np.full(56, 0.05)])
    y = x * np.concatenate([[1.6], np.ones(63)])  # both scores are below 0.05, and differ by less than 0.03
    assert isoscore(x) - isoscore(y) < 0.03 and isoscore(y) < 0.6 * isoscore(x)
    assert "becomes less isotropic" in sentence(of(x), of(y)) and "becomes more isotropic" in sentence(of(y), of(x))
    line, noise = np.outer(RNG.normal(size=500), np.ones(64)), RNG.normal(size=(500, 64))
    collapsed, less = line + 1e-4 * noise, line + 0.3 * noise
    assert isoscore(collapsed) < 1e-9 and isoscore(less) < 0.005
    assert "becomes more isotropic" in sentence(of(collapsed), of(less))
