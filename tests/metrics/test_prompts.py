"""Prompt entropy against the paper's equation, closed forms, and what a massive token does to it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz.metrics import UndefinedWarning, prompt_entropy


def published(z, alpha):
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
    limit = np.mean([(published(part, 1 - 1e-5) + published(part, 1 + 1e-5)) / 2 for part in parts])  # α → 1
    assert value == pytest.approx(limit, abs=1e-6)
    assert prompt_entropy(torch.from_numpy(x), torch.from_numpy(texts)).item() == pytest.approx(value)
    mixed = np.random.default_rng(0).permutation(len(x))  # the tokens of a text need not be neighbours
    assert prompt_entropy(x[mixed], [f"t{text}" for text in texts[mixed]]) == pytest.approx(value, abs=1e-12)


def test_known_values():
    assert prompt_entropy(np.eye(4, 9), np.zeros(4)) == pytest.approx(1)
    assert prompt_entropy(np.outer([1.0, 2, 5], [1, 1]), np.zeros(3)) == pytest.approx(0, abs=1e-9)
    halves = np.diag([1.0, 1, 0, 0])[:, :4]
    assert prompt_entropy(halves, np.zeros(4)) == pytest.approx(np.log(2) / np.log(4))
    assert prompt_entropy(halves * 1e-200, np.zeros(4)) == pytest.approx(np.log(2) / np.log(4))


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("x", [np.zeros((0, 3)), np.eye(3), np.zeros((4, 3)), np.ones((4, 1))])
def test_undefined(x, kind):
    with pytest.warns(UndefinedWarning, match="no text has 2 tokens"):
        assert np.isnan(float(prompt_entropy(kind(x), np.arange(len(x)) if len(x) == 3 else np.zeros(len(x)))))
