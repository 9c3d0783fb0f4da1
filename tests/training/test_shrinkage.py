"""Σ_S of the reported IsoScore*: which training tokens it is from, and what its sampling may do to the score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.metrics.measuring import notes_of
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.training import shrinkage
from isoviz.training.shrinkage import PARTS, SampledShrinkage
from tests.tiny import TinyModels
from tests.training.running import config, of, run

ROWS, TOKENS, D = 400, 8, 12
Rows = NDArray[np.float64]


def dependent_rows(generator: np.random.Generator) -> Rows:
    """(ROWS, TOKENS, D): tokens of a row are similar, like those of a text."""
    spread = np.linspace(3.0, 0.5, D)
    rows = generator.standard_normal((ROWS, 1, D)) * spread
    return rows + generator.standard_normal((ROWS, TOKENS, D)) * spread * 0.7


def dealt(rows: Rows, of_rows: int) -> SampledShrinkage:
    parts = []
    for number in range(PARTS):
        part = CovarianceAccumulator(D)
        part.update(rows[number::PARTS].reshape(-1, D))
        parts.append(part)
    return SampledShrinkage(len(rows), of_rows, tuple(parts))


def score(rows: Rows, cloud: NDArray[np.float64]) -> float:
    return float(metrics.isoscore_star(cloud, np.cov(rows.reshape(-1, D).T), REPORTED_ZETA))


@pytest.mark.parametrize("sampled", [40, 200])
def test_the_stated_error_covers_the_value_of_all_rows_at_its_level(sampled: int) -> None:
    generator = np.random.default_rng(0)
    rows = dependent_rows(generator)
    cloud = generator.standard_normal((900, D)) * np.linspace(2.0, 1.0, D)
    exact, covered, widths = score(rows, cloud), 0, []
    for _ in range(400):
        drawn = rows[generator.permutation(ROWS)[:sampled]]
        width = dealt(drawn, ROWS).half_width(np.cov(cloud.T), REPORTED_ZETA)
        assert width is not None
        widths.append(width)
        covered += abs(score(drawn, cloud) - exact) <= width
    assert 0.92 <= covered / 400 <= 0.985  # 95 %, and three standard errors of 400 draws
    assert np.median(widths) < 0.05 * exact


def test_nothing_is_stated_where_all_rows_were_read() -> None:
    rows = dependent_rows(np.random.default_rng(1))
    estimate = dealt(rows, ROWS)
    np.testing.assert_allclose(estimate.covariance, np.cov(rows.reshape(-1, D).T), rtol=1e-12)
    assert estimate.half_width(np.eye(D), REPORTED_ZETA) is None


def test_leaving_a_part_out_is_the_covariance_of_the_others() -> None:
    rows = dependent_rows(np.random.default_rng(2)) + 100.0
    estimate = dealt(rows[:, :1], 1000)
    others = np.concatenate([rows[number::PARTS, :1] for number in range(1, PARTS)]).reshape(-1, D)
    without = shrinkage._without(estimate._total, estimate.parts[0])
    np.testing.assert_allclose(without, np.cov(others.T), rtol=1e-9)


def test_a_run_samples_training_rows_and_says_so(
    tiny_models: TinyModels, cola: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cfg = config(tiny_models("bert"), cola, epochs=1)
    uninterrupted = of(run(cfg, tmp_path / "whole"), "measured")
    monkeypatch.setattr(shrinkage, "LEAST", 100)
    sampled = of(run(cfg, tmp_path / "sampled"), "measured")
    for one, other in zip(uninterrupted, sampled, strict=True):
        all_rows, some = (event.isotropy.reading("isoscore_star") for event in (one, other))
        assert all_rows is not None and some is not None
        assert all_rows.error is None and all_rows.note == "" and isinstance(all_rows.value, float)
        assert some.error is not None and isinstance(some.value, float)
        assert 0 < abs(some.value - all_rows.value) < 2 * some.error
        (note,) = (text for text in notes_of(other.isotropy.clouds["layers"]) if "training rows" in text)
        assert note.startswith("isoscore_star is taken with Σ_S from ") and " of 64 training rows: ± " in note
        layers = other.isotropy.clouds["layers"].with_readings({"isoscore_star": all_rows})
        clouds = {**other.isotropy.clouds, "layers": layers}
        assert clouds == one.isotropy.clouds, "nothing else depends on it"
