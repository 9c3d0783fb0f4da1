"""LiDAR against the published codes, and prompt entropy against both papers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import cross, spread_cloud, whitened

from isoviz.metrics import UndefinedWarning, lidar, prompt_entropy


def grouped(c, q, d, seed=0):
    """c groups of q views each, (c, q, d); some dimensions hardly vary within groups."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(c, 1, d)) * np.linspace(3, 0.1, d) + rng.normal(size=(c, q, d)) * rng.uniform(
        0.1, 1, size=d
    )


def published_discriminant(views, delta, epsilon, divide_by):
    """`compute_LDA_matrix` of github.com/OFSkean/information_flow, step by step; stable-pretraining divides by c − 1 and c (q − 1)."""
    d = views.shape[-1]
    means = views.mean(axis=1)
    between, within = np.zeros((d, d)), np.zeros((d, d))
    for mean, group in zip(means, views, strict=True):
        between += np.outer(mean - means.mean(axis=0), mean - means.mean(axis=0)) / divide_by[0]
        for view in group:
            within += np.outer(view - mean, view - mean) / divide_by[1]
    values, vectors = np.linalg.eigh(within + delta * np.eye(d))
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    eigenvalues = np.clip(np.linalg.eigvalsh(root @ between @ root), 0, None)
    shares = eigenvalues / eigenvalues.sum() + epsilon
    return float(np.exp(-(shares * np.log(shares)).sum())), within.trace() / d


@pytest.mark.parametrize("c, q, d", [(30, 5, 8), (6, 4, 20), (50, 2, 12)])
@pytest.mark.parametrize("unbiased", [False, True])
def test_against_the_published_codes(c, q, d, unbiased):
    """With a δ of 1e-4 of the mean variance within groups, and without ε, to 1e-6; their ε adds less than 1e-4."""
    views = grouped(c, q, d)
    divide_by = (c - 1, c * (q - 1)) if unbiased else (c, c * q)
    delta = 1e-4 * published_discriminant(views, 1.0, 1e-300, divide_by)[1]
    expected = published_discriminant(views, delta, 1e-300, divide_by)[0]
    x, groups = views.reshape(-1, d), np.repeat(np.arange(c), q)
    value = lidar(x, groups)
    assert isinstance(value, float) and value == pytest.approx(expected, abs=1e-6)
    assert value == pytest.approx(published_discriminant(views, delta, 1e-8, divide_by)[0], rel=1e-4)
    assert lidar(torch.from_numpy(x), torch.from_numpy(groups)).item() == pytest.approx(value)
    assert lidar(x, [f"text {number}" for number in groups]) == pytest.approx(value)


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_it_counts_the_directions_between_groups(rank):
    """Means at ±e_i in the first `rank` dimensions; within groups the spread is the same in all eight."""
    d = 8
    means = np.pad(cross(rank), ((0, 0), (0, d - rank)))
    x = np.concatenate([mean + whitened(20, d, seed) * 0.1 for seed, mean in enumerate(means)])
    assert lidar(x, np.repeat(np.arange(len(means)), 20)) == pytest.approx(rank, abs=1e-9)


def test_spread_within_groups_does_not_count_where_rank_me_would_see_it():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(40, 1, 2)) @ np.eye(2, 30)
    x = (means + rng.normal(size=(40, 50, 30)) * 0.3).reshape(-1, 30)
    groups = np.repeat(np.arange(40), 50)
    assert lidar(x, groups) < 3
    assert lidar(x, rng.permutation(groups)) > 15  # no group has a mean of its own: noise in all directions


def test_groups_of_different_size_count_equally_and_single_points_not_at_all():
    x, groups = grouped(12, 4, 6).reshape(-1, 6), np.repeat(np.arange(12), 4)
    more = np.concatenate([x, x[:4]])  # one group twice
    assert lidar(more, np.append(groups, groups[:4])) == pytest.approx(lidar(x, groups), abs=1e-12)
    assert lidar(np.append(x, np.ones((1, 6)), axis=0), np.append(groups, 99)) == pytest.approx(
        lidar(x, groups), abs=1e-12
    )


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(
    "x, groups, reason",
    [
        (np.zeros((0, 3)), [], "2 groups of 2 points, got 0"),
        (np.eye(3), [0, 0, 1], "2 groups of 2 points, got 1"),
        (np.repeat(np.eye(3), 2, axis=0) + 1e9, [0, 0, 1, 1, 2, 2], "points of each group are equal"),
        (np.tile(np.eye(2) + 1e9, (3, 1)), [0, 0, 1, 1, 2, 2], "the same mean"),
    ],
)
def test_discriminant_undefined(x, groups, reason, kind):
    with pytest.warns(UndefinedWarning, match=reason):
        assert np.isnan(float(lidar(kind(x), groups)))


def published_prompts(z, alpha):
    """Equation 1 of Skean et al. (2025), with `maxEntropy` of their `entropy_normalization`: over min(log N, log D)."""
    n, d = z.shape
    gram = np.array([[sum(a * b) for b in z] for a in z])
    values = np.clip(np.linalg.eigvalsh(gram), 0, None) / gram.trace()
    return np.log((values[values > 0] ** alpha).sum()) / (1 - alpha) / min(np.log(n), np.log(d))


def singular(z):
    """Queipo-de-Llano et al. (2025): p = σ²/‖X‖²_F."""
    shares = np.linalg.svd(z, compute_uv=False) ** 2 / np.linalg.norm(z) ** 2
    return -sum(p * np.log(p) for p in shares if p > 0) / np.log(min(z.shape))


@pytest.mark.parametrize("lengths, d", [([7, 3, 12], 5), ([4, 9], 30), ([2, 2], 2)])
def test_against_both_papers(lengths, d):
    x, texts = spread_cloud(sum(lengths), d) - 9, np.repeat(np.arange(len(lengths)), lengths)
    parts = [x[texts == text] for text in range(len(lengths))]
    value = prompt_entropy(x, texts)
    assert isinstance(value, float) and value == pytest.approx(np.mean([singular(part) for part in parts]), abs=1e-9)
    limit = np.mean(
        [(published_prompts(part, 1 - 1e-5) + published_prompts(part, 1 + 1e-5)) / 2 for part in parts]
    )  # α → 1
    assert value == pytest.approx(limit, abs=1e-6)
    assert prompt_entropy(torch.from_numpy(x), torch.from_numpy(texts)).item() == pytest.approx(value)
    mixed = np.random.default_rng(0).permutation(len(x))  # the tokens of a text need not be neighbours
    assert prompt_entropy(x[mixed], [f"t{text}" for text in texts[mixed]]) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("x", [np.zeros((0, 3)), np.eye(3), np.zeros((4, 3)), np.ones((4, 1))])
def test_prompts_undefined(x, kind):
    with pytest.warns(UndefinedWarning, match="no text has 2 tokens"):
        assert np.isnan(float(prompt_entropy(kind(x), np.arange(len(x)) if len(x) == 3 else np.zeros(len(x)))))
