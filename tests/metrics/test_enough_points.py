"""From how many points on a metric can be trusted: the catalogue's claims, on Gaussian clouds of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from reference_clouds import value_of

from isoviz import metrics
from isoviz.metrics.spectrum import decay

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")

TRUTH = {
    "isoscore": lambda s: (TRUTH["participation_ratio"](s) - 1) / (len(s) - 1),
    "isoscore_star": lambda s: TRUTH["isoscore"](s),
    "isoscore_unbiased": lambda s: TRUTH["isoscore"](s),
    "ev": lambda s: np.cumsum(np.sort(s)[::-1]) / s.sum(),
    "ev_1": lambda s: s.max() / s.sum(),
    "mean_cosine": lambda s: 0.0,
    "twonn": len,
    "local_dimension": len,
    "participation_ratio": lambda s: s.sum() ** 2 / (s**2).sum(),
    "effective_rank": lambda s: np.exp(-np.sum(s / s.sum() * np.log(s / s.sum()))),
    "alpha_req": lambda s: decay(np.sort(s)[::-1]),
    "dimension_std": np.sqrt,
    "rogue_share": lambda s: s.max() / s.sum(),
    "mean_activation": np.zeros_like,
    "abs_correlation": lambda s: np.eye(len(s)),
}


def spectra(d):
    """Even, and led by 10, 6, 4, 4 as in I-STAR's figure 2 (for d = 2 by 10 alone)."""
    skewed = np.ones(d)
    leaders = [10, 6, 4, 4] if d > 4 else [10]
    skewed[: len(leaders)] = leaders
    return np.ones(d), skewed


def draws_of(metric, spectrum, n, count, truth=None):
    rng = np.random.default_rng(0)
    values = [
        value_of(metric, rng.normal(size=(n, len(spectrum))) * np.sqrt(spectrum), np.diag(spectrum))
        for _ in range(count)
    ]
    return np.array(values), np.asarray((truth or TRUTH[metric.slug])(spectrum))


def worst_error(metric, share, dims, truth=None):
    worst = 0.0
    for d in dims:
        n = int(metric.enough.points(d) * share)
        for spectrum in spectra(d):
            # at least 30; more where they are cheap, so that the error is bias and not scatter
            values, expected = draws_of(metric, spectrum, n, int(np.clip(2e6 // (n * d), 30, 400)), truth)
            mean = values.mean(axis=0)
            if mean.shape != expected.shape:
                expected = expected[: len(mean)]
            worst = max(worst, float(np.abs(mean - expected).max() / (np.abs(expected).max() or 1.0)))
    return worst


def with_bias(kind):
    chosen = [metrics.get(slug) for slug in TRUTH if metrics.get(slug).enough.bias == kind]
    slow = {"marks": pytest.mark.nightly}
    cases = [pytest.param(m, id=m.slug, **(slow if m.cost == "pairs" else {})) for m in chosen]
    return pytest.mark.parametrize("metric", cases)


@with_bias("falls")
def test_enough_points_are_enough_and_a_quarter_is_not(metric):
    assert worst_error(metric, 1, (2, 8, 32)) <= metric.enough.tolerance < worst_error(metric, 0.25, (2, 8, 32))


@with_bias("none")
@pytest.mark.parametrize("d", [3, 20])
def test_unbiased_from_the_minimum_on(metric, d):
    assert metric.enough.points(d) == metric.minimum
    for spectrum in spectra(d):
        values, truth = draws_of(metric, spectrum, metric.minimum, 1500)
        error = values.mean(axis=0) - truth
        assert (np.abs(error) <= 4 * values.std(axis=0) / np.sqrt(len(values))).all()


@with_bias("saturates")
def test_enough_in_few_dimensions_and_never_in_many(metric):
    assert worst_error(metric, 1, (2, 5, 10)) <= metric.enough.tolerance
    for n in (200, 800):
        values, truth = draws_of(metric, np.ones(100), n, 2)
        assert values.mean() < 0.5 * truth
    assert values.mean() == pytest.approx({"twonn": 47, "local_dimension": 41}[metric.slug], abs=2)
