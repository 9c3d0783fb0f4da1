"""Read-outs seldom report a difference between two equal perturbations: benchmarks/readout_errors.py with fewer draws.

The bound is 5 % and four standard errors of a share from that many draws.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
DRAWS = 150


def test_read_outs_whose_rows_affect_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    simulated = importlib.import_module("readout_errors")
    bound = 0.05 + 4 * math.sqrt(0.05 * 0.95 / DRAWS)
    alarms = simulated.rates(simulated.equal_noise, DRAWS, ["random_pairs", "noise_floor", "nearest"])
    assert max(alarms.values()) <= bound
    coverage = simulated.rates(simulated.fresh_rows, DRAWS, ["noise_floor", "nearest"])
    assert min(coverage.values()) >= 1 - bound
