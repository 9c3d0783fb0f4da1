"""The maximum-likelihood dimension against loops, a package, the gamma distribution behind it, and its traps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS

from isoviz.metrics import local_dimension


def by_loops(x, k):
    logs = []
    for i, point in enumerate(x):
        distances = sorted(math.dist(point, other) for j, other in enumerate(x) if j != i)
        logs += [math.log(distances[k - 1] / distances[j]) for j in range(k - 1)]
    return len(logs) / math.fsum(logs)


DISTINCT = [name for name in ORACLE_CLOUDS if name not in ("duplicates", "mean of 10⁴")]


@pytest.mark.parametrize(
    ("cloud", "k"), [(name, k) for name in DISTINCT for k in (2, 10, 11) if len(ORACLE_CLOUDS[name]) > k]
)
def test_against_loops(cloud, k):
    x = ORACLE_CLOUDS[cloud]
    value = local_dimension(x, k)
    assert isinstance(value, float) and value == pytest.approx(by_loops(x, k), rel=1e-10)
    assert local_dimension(torch.from_numpy(x), k).item() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "seed, n, d, k, expected",
    # computed with scikit-dimension 0.5.0, MLE().fit(x, n_neighbors=k, comb="mle"), on these very clouds
    [
        (0, 300, 5, 10, 4.996748006929375),
        (0, 300, 5, 20, 4.794887963682109),
        (1, 120, 30, 10, 15.603109523689202),
        (1, 120, 30, 5, 16.375141233908195),
    ],
)
def test_against_a_package(seed, n, d, k, expected):
    x = np.random.default_rng(seed).normal(size=(n, d))
    assert local_dimension(x, k) == pytest.approx(expected, rel=1e-10)
