"""I-STAR's Figure 2: every value equals the metric on the same points, and the means follow theory."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from isoviz import metrics, studies
from isoviz.studies import istar_figure_2 as figure
from isoviz.studies.istar_figure_2 import BLOCK, Plan, blocks, estimate, expected, truth


def rows(d, seed, start, stop):
    return np.concatenate(list(blocks(d, seed, start, stop)))


def silent(share: float, activity: str) -> None:
    assert 0 <= share <= 1
    assert activity


SMALL = Plan(points=3_000, shrinkage_points=2_100, sizes=(8, 40, 70), draws=12, zetas=(0.0, 0.2, 0.8), d=24, seed=3)
WIDE = Plan(points=5_000, shrinkage_points=1_100, sizes=(64, 128), draws=30, zetas=(0.0, 0.4), d=768)


@pytest.fixture(scope="module")
def small():
    return estimate(SMALL, silent)


@pytest.fixture(scope="module")
def wide():
    return estimate(WIDE, silent)


@pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
def test_every_value_is_the_metric_on_those_points(small):
    cloud = functools.partial(rows, SMALL.d, SMALL.seed)
    shrinkage = np.cov(cloud(0, SMALL.shrinkage_points).T)
    for n in SMALL.sizes:
        for draw in range(SMALL.draws):
            start = SMALL.shrinkage_points + draw * n
            points = cloud(start, start + n)
            assert points.shape == (n, SMALL.d)
            assert small.unbiased[n][draw] == pytest.approx(metrics.isoscore_unbiased(points), rel=1e-10)
            for zeta in SMALL.zetas:
                reference = metrics.isoscore_star(points, shrinkage, zeta)
                assert small.star[zeta][n][draw] == pytest.approx(reference, rel=1e-10)
    assert small.whole == pytest.approx(metrics.isoscore(cloud(0, SMALL.points)), rel=1e-10)


@pytest.mark.parametrize("zeta", [0.0, 0.4])
def test_the_lines_follow_the_closed_form_expectation(wide, zeta):
    for n in WIDE.sizes:
        values = wide.star[zeta][n]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        theory = expected(WIDE.d, n, WIDE.shrinkage_points, zeta)
        # 2e-3: draws of one ζ > 0 share their Σ_S, whose own error does not average out, and the theory is a ratio of
        # expectations; over five seeds the means lay within 2.2e-3 of it, sampling error included
        assert abs(np.mean(values) - theory) < 4 * error + 2e-3 * theory
        assert theory < 0.8 * truth(WIDE.d)


def test_the_unbiased_mean_equals_the_truth(wide):
    for n in WIDE.sizes:
        values = wide.unbiased[n]
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - truth(768)) < 3 * error
        assert error < 0.02


def test_truth_and_expectation_agree_with_the_recorded_values():
    """0.86734 by hand: T = 788, F = 932, PR = T²/F = 666.25…; and the plug-in value in the limit is the truth."""
    assert truth(768) == pytest.approx((788**2 / 932 - 1) / 767, rel=1e-12)
    assert truth(768) == pytest.approx(0.86734, abs=5e-6)
    assert expected(768, 10**9, 10**9, 0.2) == pytest.approx(truth(768), rel=1e-5)
    assert expected(768, 700, 75_000, 0.0) == pytest.approx(0.443, abs=1e-3)
    assert expected(768, 700, 75_000, 0.2) == pytest.approx(0.538, abs=1e-3)


def test_rows_do_not_depend_on_the_form_of_the_request():
    cloud = functools.partial(rows, 6, 1)
    assert np.array_equal(cloud(1_500, 6_100)[700:900], cloud(2_200, 2_400))
    assert not np.array_equal(cloud(0, 10), cloud(BLOCK, BLOCK + 10))
    assert cloud(0, 20_000).var(axis=0) == pytest.approx(figure.variances(6), rel=0.06)


def test_the_result_is_plain_data_that_survives_json(monkeypatch):
    monkeypatch.setattr(figure, "PLANS", {"quick": SMALL})
    result = figure.FIGURE_2.run("quick", silent)
    again = studies.Result.model_validate_json(result.model_dump_json())
    assert again == result
    ((panel,),) = ([*figure.panels] for figure in result.figures)
    measured = [trace for trace in panel.traces if "error_y" in trace]
    assert [trace["legendgroup"] for trace in measured] == ["ζ = 0", "ζ = 0.2", "ζ = 0.8", "added"]
    assert all(trace["x"] == [8.0, 40.0, 70.0] for trace in panel.traces)
    assert all(
        length > 0 for trace in measured for ends in ("array", "arrayminus") for length in trace["error_y"][ends]
    )
    assert result.provenance.config["sizes"] == [8, 40, 70]
    assert result.provenance.seed == 3
    assert set(result.provenance.versions) == {"isoviz", "python", "numpy"}
    assert result.published == []  # the paper's number belongs to its own 768 dimensions
