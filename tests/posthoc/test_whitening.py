"""ZCA and PCA whitening against scipy, scikit-learn and their own promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from isoviz import metrics
from isoviz.posthoc import pca_whitening, zca
from tests.posthoc.clouds import cloud

quick = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def full_rank_clouds(draw):
    """Condition numbers up to 100: beyond about 1000 directions are dropped."""
    d = draw(st.integers(2, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = np.append(rng.uniform(0.01, 1, size=d - 1), 1)
    return rng.normal(size=(draw(st.integers(3 * d, 60)), d)) * spread @ rotation + draw(st.floats(-100, 100))


@pytest.mark.parametrize("strength", [0, 0.25, 0.5, 0.9, 1])
def test_zca_is_a_fractional_power_of_the_covariance(strength):
    train, dev = cloud(), cloud(20, seed=1)
    power = scipy.linalg.fractional_matrix_power(np.cov(train.T), -strength / 2)
    whitened = zca(strength=strength).fit(train).transform(dev)
    np.testing.assert_allclose(whitened, (dev - train.mean(0)) @ power, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("components", [None, 1, 3, 8])
def test_pca_whitening_against_scikit_learn(components):
    train, dev = cloud(), cloud(20, seed=1)
    oracle = PCA(n_components=components, whiten=True, svd_solver="full").fit(train)
    ours = pca_whitening(components=components).fit(train)
    whitened, expected = ours.transform(dev), oracle.transform(dev)
    signs = np.sign((whitened * expected).sum(axis=0))
    np.testing.assert_allclose(whitened * signs, expected, rtol=1e-8, atol=1e-9)
    assert ours.dropped == 0


@quick
@given(train=full_rank_clouds())
def test_the_fit_set_becomes_white(train):
    for transform in (zca(), pca_whitening()):
        image = transform.fit_transform(train)
        assert transform.dropped == 0
        np.testing.assert_allclose(image.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(np.cov(image.T), np.eye(train.shape[1]), atol=1e-8)
        assert metrics.isoscore(image) == pytest.approx(1, abs=1e-9)


def test_strength_zero_only_centres_even_outside_the_span():
    train, dev = cloud(5, 12), cloud(4, 12, seed=1)
    transform = zca(strength=0).fit(train)
    np.testing.assert_allclose(transform.transform(dev), dev - train.mean(0), atol=1e-12)
    assert transform.dropped == 0
    rotated = pca_whitening(strength=0).fit(train).transform(dev)
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=1), np.linalg.norm(dev - train.mean(0), axis=1), rtol=1e-12)


def test_fewer_points_than_dimensions_drop_directions():
    train = cloud(5, 12)
    for transform in (zca(), pca_whitening()):
        image = transform.fit_transform(train)
        assert transform.dropped == 12 - 4
        assert image.shape == (5, 12)
        values = np.linalg.eigvalsh(np.cov(image.T))
        np.testing.assert_allclose(values, [0] * 8 + [1] * 4, atol=1e-9)
    np.testing.assert_array_equal(image[:, 4:], 0)  # PCA: columns of zeros at the end
    # what lies outside the span of the fit set maps to 0
    outside = train.mean(0) + scipy.linalg.null_space(train - train.mean(0)).T
    np.testing.assert_allclose(zca().fit(train).transform(outside), 0, atol=1e-9)


def test_the_drop_rule_is_on_the_variance():
    # variances 1 and t·(1e-7·√2): just above stays, just below goes
    base = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    edge = np.sqrt(1e-7 * np.sqrt(2))
    assert zca().fit(base * [1, 1.01 * edge]).dropped == 0
    below = zca().fit(base * [1, 0.99 * edge])
    assert below.dropped == 1
    np.testing.assert_allclose(below.transform(base)[2:], 0, atol=1e-12)


@pytest.mark.parametrize("make", [zca, pca_whitening])
def test_a_ridge_instead_of_dropping(make):
    train, dev = cloud(5, 12), cloud(4, 12, seed=1)
    transform = make(eps=0.5).fit(train)
    assert transform.dropped == 0
    inverse = np.linalg.inv(np.cov(train.T) + 0.5 * np.eye(12))
    centred, image = dev - train.mean(0), transform.transform(dev)
    np.testing.assert_allclose(image @ image.T, centred @ inverse @ centred.T, rtol=1e-9)


def test_rounding_around_a_large_mean_is_not_whitened():
    single = (1e4 + 1e-4 * cloud()).astype(np.float32)  # float32 steps there are 1e-3
    assert zca().fit(single).dropped == 8
    assert zca().fit((1e4 + 10 * cloud()).astype(np.float32)).dropped == 0
