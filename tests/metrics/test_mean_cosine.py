"""The mean cosine against all pairs, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.metrics import UndefinedWarning, mean_cosine


def test_zero_vectors_are_left_out():
    cloud = np.random.default_rng(0).normal(size=(20, 3)) + 1
    assert mean_cosine(np.concatenate([cloud, np.zeros((7, 3))])) == pytest.approx(mean_cosine(cloud), abs=1e-15)
    with pytest.warns(UndefinedWarning, match="at least 2 vectors that are not zero, got 1"):
        assert np.isnan(mean_cosine(np.concatenate([cloud[:1], np.zeros((7, 3))])))


def test_the_length_of_each_vector_is_free():
    cloud = np.random.default_rng(0).normal(size=(20, 3))
    lengths = 10.0 ** np.linspace(-200, 200, 20)[:, None]
    assert mean_cosine(cloud * lengths) == pytest.approx(mean_cosine(cloud), abs=1e-14)
    assert mean_cosine(np.ones((5, 4))) == pytest.approx(1.0)
