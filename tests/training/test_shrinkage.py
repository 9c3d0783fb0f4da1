"""Σ_S of the reported IsoScore*: which training tokens it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoviz.metrics.measuring import notes_of
from isoviz.training import shrinkage
from tests.tiny import TinyModels
from tests.training.running import config, of, run


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
        assert all_rows.note == "" and isinstance(all_rows.value, float) and isinstance(some.value, float)
        assert 0 < abs(some.value - all_rows.value) < 0.2 * all_rows.value
        (note,) = (text for text in notes_of(other.isotropy.clouds["layers"]) if "training rows" in text)
        assert note.startswith("isoscore_star is taken with Σ_S from ") and " of 64 training rows" in note
        layers = other.isotropy.clouds["layers"].with_readings({"isoscore_star": all_rows})
        clouds = {**other.isotropy.clouds, "layers": layers}
        assert clouds == one.isotropy.clouds, "nothing else depends on it"
