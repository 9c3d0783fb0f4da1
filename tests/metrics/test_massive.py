"""The largest entry over the median against the authors' code, on a planted massive activation and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS

from isoviz.metrics import describe, massive_activation


def as_in_the_authors_code(hidden):
    """`main_llm.py --exp2` of locuslab/massive-activations: the largest and the median magnitude of a layer's hidden state."""
    magnitudes = hidden.abs()
    ordered = torch.sort(magnitudes.flatten(), descending=True)
    return float(ordered.values[0] / torch.median(magnitudes))


@pytest.mark.parametrize("cloud", ORACLE_CLOUDS)
def test_against_the_authors_code(cloud):
    x = ORACLE_CLOUDS[cloud]
    value = massive_activation(x)
    assert isinstance(value, float) and value == pytest.approx(as_in_the_authors_code(torch.from_numpy(x)), rel=1e-14)
    assert massive_activation(torch.from_numpy(x)).item() == value == describe(x)["massive_activation"]


def tokens(entries):
    """1,000 tokens of length about √64, with massive entries planted: (row, dimension, value)."""
    x = np.random.default_rng(0).normal(size=(1000, 64)) * 0.1
    for row, dimension, value in entries:
        x[row, dimension] = value
    return x


def notes(x):
    return [note for note in describe(x, twonn=False)["warnings"] if note.startswith("massive_activation")]


def test_massive_entries_are_counted_with_their_share_of_the_squares():
    planted = [(0, 5, 300.0), (100, 5, -250.0), (7, 9, 120.0)]
    x = tokens(planted)
    assert massive_activation(x) == pytest.approx(300 / np.median(np.abs(x)), rel=1e-4)
    share = sum(value**2 for *_, value in planted) / (x**2).sum()
    assert 0.99 < share < 1
    (note,) = notes(x)
    assert f"finds 3 entries above 100 and 1,000 times the median, with {share:.0%} of" in note
    (note,) = notes(tokens(planted[:1]))
    assert "finds 1 entry above" in note
