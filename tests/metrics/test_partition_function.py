"""I1 and I2 against plain loops over the definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoviz.metrics import partition


def by_loops(w, signs, convention):
    _, vectors = np.linalg.eigh(w.T @ w)
    columns = [v if v @ w.sum(axis=0) >= 0 else -v for v in vectors.T]
    directions = columns if convention == "definition" else list(np.array(columns).T)
    if signs == "both":
        directions = directions + [-v for v in directions]
    z = [sum(np.exp(v @ row) for row in w) for v in directions]
    mean = sum(z) / len(z)
    i2 = sum((value - mean) ** 2 for value in z) / mean**2
    if convention == "definition":
        i2 /= len(z)
    return min(z) / max(z), np.sqrt(i2)


@pytest.mark.parametrize("signs", ["positive", "both"])
@pytest.mark.parametrize("convention", ["definition", "published"])
@pytest.mark.parametrize("shape", [(40, 6), (6, 6), (6, 1)])
def test_against_loops(shape, signs, convention):
    w = np.random.default_rng(0).normal(size=shape) * 0.5 + 0.2
    expected = by_loops(w, signs, convention)
    assert partition(w, signs=signs, convention=convention) == pytest.approx(expected, rel=1e-10)
    tensors = partition(torch.from_numpy(w), signs=signs, convention=convention)
    assert [t.item() for t in tensors] == pytest.approx(list(expected), rel=1e-10)


@pytest.mark.parametrize("labels, i1, i2", [(2, 0.912, 0.388), (3, 0.930, 0.320), (6, 0.950, 0.228)])
def test_the_published_pairs_come_from_the_published_convention(labels, i1, i2):
    """A classifier at its initial scale, N(0, 0.02²), d = 768: methods.md §9 on paper 003's printed values."""
    draws = [
        partition(np.random.default_rng(seed).normal(size=(labels, 768)) * 0.02, convention="published")
        for seed in range(4)
    ]
    assert np.mean(draws, axis=0) == pytest.approx([i1, i2], abs=0.01)


def test_the_definition_respects_its_bound():
    for seed in range(5):
        i1, i2 = partition(np.random.default_rng(seed).normal(size=(30, 8)))
        assert i2 <= (1 - i1) / (2 * np.sqrt(i1))


def test_it_is_not_free_of_scale():
    w = np.random.default_rng(0).normal(size=(100, 16))
    assert partition(w)[0] < 0.5 < 0.99 < partition(w * 1e-3)[0]


def test_large_vectors_do_not_overflow():
    w = np.random.default_rng(0).normal(size=(50, 4)) * 1000
    i1, i2 = partition(w, signs="both")
    assert 0 <= i1 < 1e-100
    assert np.isfinite(i2)


def test_the_blocks_do_not_show(monkeypatch):
    w = np.random.default_rng(0).normal(size=(50, 12))
    whole = partition(w)
    monkeypatch.setattr("isoviz.metrics.partition_function._BLOCK", 100)
    assert partition(w) == pytest.approx(whole, rel=1e-13)


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="signs must be 'positive' or 'both', got 'negative'"):
        partition(np.eye(3), signs="negative")
    with pytest.raises(ValueError, match="convention must be"):
        partition(np.eye(3), convention="mine")
