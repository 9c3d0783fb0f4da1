"""SIGReg's statistic over all directions against quadrature along drawn ones, scipy's Kummer function and the authors' package;
and its test: the level by simulation, the null's mean and variance, and what it tells apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS, spread_cloud
from scipy.special import hyp1f1

from isoviz.metrics import describe, epps_pulley
from isoviz.metrics.gaussian import _null_cumulants, _null_mean, p_value


def standardised(x):
    centred = x - x.mean(axis=0)
    return centred / np.sqrt((centred**2).sum() / x.size)


def along(projections):
    """n ∫ |φ̂(t) − exp(−t²/2)|² exp(−t²/2) dt of each column, by the trapezoidal rule on [−8, 8]."""
    t = np.linspace(-8, 8, 161)
    empirical = np.exp(1j * t[:, None, None] * projections).mean(axis=1)
    gap = np.abs(empirical - np.exp(-(t**2) / 2)[:, None]) ** 2 * np.exp(-(t**2) / 2)[:, None]
    return len(projections) * gap.sum(axis=0) * (t[1] - t[0])


@pytest.mark.parametrize("d", [2, 3])
def test_it_is_the_mean_over_directions(d):
    """Even directions of the circle, and of the sphere by Fibonacci's spiral."""
    x = spread_cloud(30, d)
    k = np.arange(600) + 0.5
    if d == 2:
        directions = np.stack([np.cos(np.pi * k / 600), np.sin(np.pi * k / 600)])
    else:
        height, turn = 1 - 2 * k / 600, np.pi * (1 + math.sqrt(5)) * k
        directions = np.stack([np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height])
    expected = along(standardised(x) @ directions).mean()
    assert isinstance(epps_pulley(x), float) and epps_pulley(x) == pytest.approx(
        expected, rel=1e-10 if d == 2 else 1e-3
    )


@pytest.mark.parametrize("cloud", ORACLE_CLOUDS)
def test_against_loops_with_scipys_function(cloud):
    x = ORACLE_CLOUDS[cloud]
    y = standardised(x)
    n, d = y.shape
    pairs = sum(hyp1f1(0.5, d / 2, -((a - b) @ (a - b)) / 2) for a in y for b in y) / n
    singles = sum(hyp1f1(0.5, d / 2, -(a @ a) / 4) for a in y)
    expected = math.sqrt(2 * math.pi) * (pairs - math.sqrt(2) * singles + n / math.sqrt(3))
    assert epps_pulley(x) == pytest.approx(expected, rel=1e-8)
    assert epps_pulley(torch.from_numpy(x)).item() == pytest.approx(epps_pulley(x), rel=1e-12)
    assert describe(x)["epps_pulley"] == epps_pulley(x)


@pytest.mark.parametrize(
    "seed, n, expected",
    # EppsPulley(t_max=8, n_points=161) of rbalestr-lab/lejepa on these very points, standardised; its weights are float32.
    # Its default, 17 points up to 3, gives 0.21726 and 6.18940.
    [(0, 40, 0.2254731849320292), (1, 200, 6.1976409556886525)],
)
def test_in_one_dimension_against_the_authors_package(seed, n, expected):
    x = np.random.default_rng(seed).standard_t(4, size=(n, 1))
    assert epps_pulley(x) == pytest.approx(expected, abs=1e-7)
    y = standardised(x)[:, 0]
    closed = (
        np.exp(-((y[:, None] - y) ** 2) / 2).sum() / n - math.sqrt(2) * np.exp(-(y**2) / 4).sum() + n / math.sqrt(3)
    )
    assert epps_pulley(x) == pytest.approx(math.sqrt(2 * math.pi) * closed, rel=1e-10)


# The test


@pytest.mark.parametrize("n, d", [(12, 1), (40, 2), (12, 8), (25, 40), (12, 300)])
def test_its_level(n, d):
    """Of 1,000 Gaussian clouds with a mean and a scale; 4 standard errors of a share of 5 % are 2.8 percentage points."""
    rng = np.random.default_rng(0)
    statistics = np.array([epps_pulley(rng.normal(size=(n, d)) * 3 + 50) for _ in range(1000)])
    p = np.array([p_value(statistic, n, d) for statistic in statistics])
    for level in (0.01, 0.05, 0.2, 0.5):
        error = math.sqrt(level * (1 - level) / len(p))
        assert np.mean(p < level) == pytest.approx(level, abs=4 * error + 0.1 * level), level
    error = statistics.std() / math.sqrt(len(p))
    assert statistics.mean() == pytest.approx(_null_mean(n, d), abs=4 * error)


@pytest.mark.parametrize("d", [1, 2])
def test_the_limit_of_the_null(d):
    """From the covariance on a grid of frequencies and, in the plane, of directions."""
    t = np.linspace(-6, 6, 61)
    angles = np.array([0.0]) if d == 1 else np.arange(16) * np.pi / 16
    s, u = (grid.ravel() for grid in np.meshgrid(t, angles, indexing="ij"))
    product = s[:, None] * s * np.cos(u[:, None] - u)
    squares = s[:, None] ** 2 + s**2
    kernel = np.exp(product - squares / 2) - np.exp(-squares / 2) * (1 + product + np.outer(s, s) ** 2 / (2 * d))
    weighted = kernel * np.exp(-(s**2) / 2) * (t[1] - t[0]) / len(angles)
    squared = weighted @ weighted
    expected = 2 * np.trace(squared), 8 * (squared.T * weighted).sum()
    assert _null_cumulants(d) == pytest.approx(expected, rel=1e-6)


def test_a_note_says_where_it_tells_nothing_apart():
    x = np.random.default_rng(1).normal(size=(300, 6)) * 7 - 40
    (note,) = [note for note in describe(x)["warnings"] if note.startswith("epps_pulley")]
    p = describe(x)["epps_pulley_p"]
    assert p > 0.05 and f"(p = {p:.2f})" in note
