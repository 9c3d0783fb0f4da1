"""All-but-the-top against a loop over points and directions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoviz import metrics
from isoviz.errors import InputError
from isoviz.posthoc import all_but_the_top
from tests.posthoc.clouds import cloud


def looped(train, points, remove, literal):
    mean = train.mean(axis=0)
    _, _, rows = np.linalg.svd(train - mean)
    image = []
    for point in points:
        centred = point - mean
        for u in rows[:remove]:
            centred = centred - (u @ (point if literal else point - mean)) * u
        image.append(centred)
    return np.array(image)


@pytest.mark.parametrize("shape", [(120, 8), (6, 8)])
@pytest.mark.parametrize("remove", [0, 1, 3])
@pytest.mark.parametrize("literal", [False, True])
def test_against_the_loop(shape, remove, literal):
    train, dev = cloud(*shape), cloud(10, 8, seed=1)
    transform = all_but_the_top(remove=remove, literal=literal).fit(train)
    assert transform.removed == remove
    np.testing.assert_allclose(transform.transform(dev), looped(train, dev, remove, literal), rtol=1e-9, atol=1e-9)


def test_the_literal_form_leaves_a_constant():
    train, dev = cloud(), cloud(30, seed=1)
    plain = all_but_the_top(remove=2).fit(train)
    literal = all_but_the_top(remove=2, literal=True).fit(train)
    difference = literal.transform(dev) - plain.transform(dev)
    _, _, rows = np.linalg.svd(train - train.mean(0))
    constant = -sum((u @ train.mean(0)) * u for u in rows[:2])
    np.testing.assert_allclose(difference, np.tile(constant, (30, 1)), atol=1e-9)
    assert np.linalg.norm(constant) > 0.1
    np.testing.assert_allclose(np.cov(plain.transform(train).T), np.cov(literal.transform(train).T), atol=1e-9)
    assert metrics.mean_cosine(plain.transform(train)) != pytest.approx(
        metrics.mean_cosine(literal.transform(train)), abs=0.01
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), remove=st.integers(0, 6), literal=st.booleans())
def test_removed_directions_keep_no_variance(seed, remove, literal):
    train = cloud(50, 6, seed)
    values, vectors = np.linalg.eigh(np.cov(train.T))
    image = all_but_the_top(remove=remove, literal=literal).fit_transform(train)
    left = np.var(image @ vectors[:, ::-1], axis=0, ddof=1)
    np.testing.assert_allclose(left, np.where(np.arange(6) < remove, 0, values[::-1]), atol=1e-9 * values[-1])


def test_the_default_is_a_hundredth_of_the_width():
    assert all_but_the_top().fit(cloud(30, 8)).removed == 1
    assert all_but_the_top().fit(np.random.default_rng(0).normal(size=(40, 260))).removed == 3


def test_no_more_than_the_rank_is_removed():
    transform = all_but_the_top(remove=7).fit(cloud(4, 9))
    assert transform.removed == 3
    dev = cloud(5, 9, seed=1)
    assert np.linalg.matrix_rank(transform.transform(dev)) == 5  # the rest of the space is left alone


def test_all_directions_and_too_many():
    np.testing.assert_allclose(all_but_the_top(remove=8).fit_transform(cloud()), 0, atol=1e-12)
    with pytest.raises(InputError, match="remove must be at most 8, .* got 9"):
        all_but_the_top(remove=9).fit(cloud())
    with pytest.raises(InputError, match="remove: .* greater than or equal to 0"):
        all_but_the_top(remove=-1)
