"""I1 and I2 against plain loops over the definition."""

from __future__ import annotations

import math
import tracemalloc
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isoviz.metrics import UndefinedWarning, partition, row_norms
from isoviz.metrics.partition_function import Variant, partitions


def by_loops(w, signs, convention, scale_free=False):
    if scale_free:
        w = w / np.sqrt(np.mean([row @ row for row in w]))
    _, vectors = np.linalg.eigh(w.T @ w)
    columns = []
    for v in vectors.T:
        along = v @ w.sum(axis=0)
        columns.append(v if along >= 0 else -v)
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
@pytest.mark.parametrize("shape", [(40, 6), (7, 6), (6, 1)])
def test_against_loops(shape, signs, convention):
    w = np.random.default_rng(0).normal(size=shape) * 0.5 + 0.2
    for scale_free in (False, True):
        options = {"signs": signs, "convention": convention, "scale_free": scale_free}
        expected = by_loops(w, **options)
        assert partition(w, **options) == pytest.approx(expected, rel=1e-10)
        tensors = partition(torch.from_numpy(w), **options)
        assert [t.item() for t in tensors] == pytest.approx(list(expected), rel=1e-10)


def test_the_order_does_not_orient_rows_whose_sum_is_rounding():
    w = np.random.default_rng(0).normal(size=(40, 6)) * (3, 2, 1.5, 1, 0.7, 0.5)
    w -= w.mean(axis=0)
    assert partition(w[::-1]) == pytest.approx(partition(w), rel=1e-10)


PUBLISHED_TRAP = {  # labels: (rows, no 1/|V|) as printed in the paper, (columns as defined)
    2: ((0.912, 0.388), (0.64, 0.013)),
    3: ((0.930, 0.320), (0.68, 0.011)),
    6: ((0.950, 0.228), (0.78, 0.009)),
}


def pair_as_defined(w, sign_of):
    """(I1, I2) over the columns, from the right singular vectors: in the null space Z is the number of labels."""
    labels, d = w.shape
    vectors = np.linalg.svd(w, full_matrices=False)[2]
    z = [sum(np.exp(row @ v) for row in w) for v in (sign_of(v) * v for v in vectors)] + [float(labels)] * (d - labels)
    return min(z) / max(z), np.std(z) / np.mean(z)


@pytest.mark.parametrize("labels", PUBLISHED_TRAP)
def test_the_published_pairs_follow_the_published_convention(labels):
    """A classifier at its initial scale, N(0, 0.02²), d = 768. methods.md leaves the columns' signs to chance."""
    published, defined = PUBLISHED_TRAP[labels]
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(100, labels, 768)) * 0.02
    as_published, as_defined = partitions(draws[0], [Variant(convention="published"), Variant()])
    assert as_published == pytest.approx(published, abs=0.015)
    assert as_defined == pytest.approx(pair_as_defined(draws[0], lambda v: np.sign(v @ draws[0].sum(0))), 1e-9)
    i1, i2 = np.mean([pair_as_defined(w, lambda _: rng.choice([-1.0, 1.0])) for w in draws], axis=0)
    assert i1 == pytest.approx(defined[0], abs=0.04)
    assert i2 == pytest.approx(defined[1], abs=0.0025)
    # The printed pairs lie beyond the bound that any Z whatever keeps.
    assert published[1] > (1 - published[0]) / (2 * np.sqrt(published[0]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    d=st.integers(1, 12),
    scale=st.floats(1e-3, 3.0),
    mean=st.floats(-1, 1),
    signs=st.sampled_from(["positive", "both"]),
    scale_free=st.booleans(),
)
@example(seed=0, n=1, d=1, scale=1.0, mean=0.0, signs="both", scale_free=False)  # two values: equality
def test_the_definition_respects_its_bound(seed, n, d, scale, mean, signs, scale_free):
    w = np.random.default_rng(seed).normal(size=(n, d)) * scale + mean
    i1, i2 = partition(w, signs=signs, scale_free=scale_free)
    assert 0 < i1 <= 1
    assert i2 <= (1 - i1) / (2 * np.sqrt(i1)) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("scale", [1e-50, 1e-3, 1.0, 40.0, 1e50])
def test_scale_free_ignores_the_scale_and_the_rest_does_not(scale):
    w = np.random.default_rng(0).normal(size=(100, 8)) + 0.3
    assert partition(w * scale, scale_free=True) == pytest.approx(partition(w, scale_free=True), rel=1e-9)
    unit = w / np.sqrt((w**2).sum() / 100)
    assert partition(w * scale, scale_free=True) == pytest.approx(partition(unit), rel=1e-9)


def test_rows_without_a_scale():
    assert partition(np.zeros((5, 3))) == (1.0, 0.0)
    with pytest.warns(UndefinedWarning, match="all are zero") as caught:
        assert np.isnan(partition(np.zeros((5, 3)), scale_free=True)).all()
    assert caught[0].filename == __file__


def test_row_norms_by_loops_and_at_the_ends_of_float64():
    w = np.random.default_rng(0).normal(size=(7, 4))
    w[3] = 0.0
    expected = [sum(v * v for v in row) ** 0.5 for row in w]
    np.testing.assert_allclose(row_norms(w), expected, rtol=1e-14)
    np.testing.assert_allclose(row_norms(w * 1e-200) / 1e-200, expected, rtol=1e-13)
    np.testing.assert_allclose(row_norms(w * 1e200) / 1e200, expected, rtol=1e-13)
    tensor = row_norms(torch.from_numpy(w).float())
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor, expected, rtol=1e-6)
    assert row_norms(np.zeros((0, 4))).shape == (0,)


def test_hidden_state_norms_give_their_logarithms():
    """Norms of 300 put exp(v·w) beyond 1e308: I1 and I2 as computed from the logarithms in decimal arithmetic."""
    w = np.random.default_rng(0).normal(size=(12, 3)) * 400
    assert row_norms(w).max() > 300
    z = []
    _, vectors = np.linalg.eigh(w.T @ w)
    for v in vectors.T:
        v = v if v @ w.sum(axis=0) >= 0 else -v
        z.append(sum(Decimal(float(row @ v)).exp() for row in w))
    mean = sum(z) / 3
    i2 = (sum((value / mean - 1) ** 2 for value in z) / 3).sqrt()
    with pytest.raises(OverflowError):
        math.exp(abs(w @ vectors).max())
    assert partition(w) == pytest.approx((float(min(z) / max(z)), float(i2)), rel=1e-9)


def all_at_once(w, reading):
    """(I1, I2) from the full matrix without blocks."""
    w = np.asarray(w, dtype=np.float64)
    if reading.scale_free:
        w = w / np.sqrt(np.einsum("ij,ij->", w, w) / len(w))
    vectors = np.linalg.eigh(w.T @ w)[1]
    vectors = vectors * np.where(w.sum(axis=0) @ vectors < 0, -1.0, 1.0)
    logits = w @ (vectors.T if reading.convention == "published" else vectors)
    log_z = logits.max(axis=0) + np.log(np.exp(logits - logits.max(axis=0)).sum(axis=0))
    z = np.exp(log_z - log_z.max())
    squares = ((z - z.mean()) ** 2).sum() / z.mean() ** 2
    return z.min(), np.sqrt(squares if reading.convention == "published" else squares / len(z))


READINGS = [
    Variant(convention=convention, scale_free=scale_free)
    for convention in ("definition", "published")
    for scale_free in (False, True)
]


def test_several_readings_in_one_pass_match_the_full_matrix():
    w = (np.random.default_rng(0).normal(size=(3_000, 48)) * np.geomspace(2, 0.05, 48) + 0.1).astype(np.float32)
    progress = []
    results = partitions(w, READINGS, lambda done, rows: progress.append((done, rows)))
    for pair, reading in zip(results, READINGS, strict=True):
        assert pair == pytest.approx(all_at_once(w, reading), rel=1e-10)
        assert pair == pytest.approx(partition(w.astype(float), *reading), rel=1e-12)
    assert progress[-1] == (3_000, 3_000)
    assert partitions(np.zeros((4, 3)), READINGS) == [(1.0, 0.0), None, (1.0, 0.0), None]
    assert partitions(np.zeros((0, 3)), READINGS) == [None] * 4


def test_a_vocabulary_is_never_copied_completely(monkeypatch):
    w = np.random.default_rng(0).normal(size=(40_000, 32)).astype(np.float32)
    expected = [all_at_once(w, reading) for reading in READINGS]
    monkeypatch.setattr("isoviz.metrics.partition_function._BLOCK", 40_000)
    partitions(w[:9], READINGS), row_norms(w[:9])  # what is imported the first time is no copy
    tracemalloc.start()
    results = partitions(w, READINGS)
    norms = row_norms(w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(results, expected, rtol=1e-10)
    np.testing.assert_allclose(norms, np.linalg.norm(w.astype(float), axis=1), rtol=1e-6)
    assert peak < 0.35 * 8 * w.size  # of what W takes in float64
