"""The ruler's intervals hold the truth of known populations: benchmarks/ruler.py with fewer draws.

The bound is 95 % minus four standard errors of a share from that many draws. AUC is left out: near 1 a few pairs decide it.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from isoviz.readouts import ruler as rulers
from isoviz.readouts.ruler.pairs import pairs_of, relation_of
from tests import nightly

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
DRAWS = 120


@pytest.mark.parametrize(
    "name",
    nightly.cases(["100 pairs", "1 in 1,000 mistaken, 1 % related", "texts in up to 5 pairs"], always=[]),
)
def test_intervals_hold_the_truth(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    simulated = importlib.import_module("ruler")
    held = simulated.coverage(*simulated.POPULATIONS[name], DRAWS)
    del held["AUC"]
    assert min(held.values()) >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / DRAWS), held


def test_a_text_is_no_pair_with_itself() -> None:
    generator = np.random.default_rng(0)
    points = generator.normal(size=(40, 16))
    repeated = np.concatenate([points, points[:10] * (1 + 1e-8)])  # as encoders repeat a text
    assert rulers.ruler(repeated).compared == 50 * 49 // 2 - 10
    compared = pairs_of(repeated, None, generator, 100)
    assert compared.group_count == 40 and compared.groups[0][0] == compared.groups[0][40]


def test_rows_that_a_chain_of_pairs_connects_are_not_unrelated() -> None:
    points = np.random.default_rng(0).normal(size=(60, 8))
    pairs = [(3 * k + a, 3 * k + b) for k in range(20) for a, b in ((0, 1), (1, 2))]
    compared = pairs_of(points, relation_of(pairs, None, 60), np.random.default_rng(0), 100)
    assert compared.related.sum() == 40 and compared.unrelated.sum() == 60 * 59 // 2 - 20 * 3
    assert compared.group_count == 20


def test_rows_of_one_label_are_not_unrelated_however_many_there_are() -> None:
    labels = np.arange(1_500) % 3
    ruler = rulers.ruler(np.random.default_rng(0).normal(size=(1_500, 4)), labels=labels.tolist())
    assert ruler.compared == 3 * 500 * 500
