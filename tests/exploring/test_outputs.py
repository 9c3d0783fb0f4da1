"""The output matrix of a run's head, of a vocabulary, of a model that has none; measured once per model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isoviz import metrics
from isoviz.exploring import outputs
from isoviz.models import sources
from isoviz.models.checkpoint import output_embeddings
from isoviz.models.sources import ModelSource
from tests.tiny import TinyModels


@pytest.fixture(scope="module")
def bundled() -> ModelSource:
    return sources.resolve("demo/tiny-bert")


def pairs(found: dict[str, Any]) -> dict[tuple[str, bool], tuple[float, float]]:
    return {(pair["convention"], pair["scale_free"]): (pair["i1"], pair["i2"]) for pair in found["pairs"]}


def test_a_vocabulary_is_measured_by_both_conventions(bundled: ModelSource, tmp_path: Path) -> None:
    found = outputs.of(bundled, at=tmp_path)
    weights = output_embeddings(bundled)
    assert weights is not None and (found["rows"], found["d"]) == weights.shape
    assert "language-model head" in found["what"] and found["each"] is None
    for (convention, scale_free), pair in pairs(found).items():
        expected = metrics.partition(weights.astype(float), convention=convention, scale_free=scale_free)  # type: ignore[arg-type]
        assert pair == pytest.approx(expected, rel=1e-10)
    assert len(found["pairs"]) == 4
    lengths = np.linalg.norm(weights.astype(float), axis=1)
    assert found["norms"]["mean"] == pytest.approx(lengths.mean()) and found["norms"]["max"] == pytest.approx(
        lengths.max()
    )
    assert sum(found["counts"]) == len(lengths) and len(found["edges"]) == len(found["counts"]) + 1
    json.dumps(found, allow_nan=False)


def test_it_is_measured_once_per_model(bundled: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = outputs.of(bundled, at=tmp_path)
    monkeypatch.setattr(outputs, "measure", lambda *_: pytest.fail("measured again"))
    assert outputs.of(bundled, at=tmp_path) == first


def test_a_runs_head_is_its_output_layer(bundled: ModelSource, tmp_path: Path) -> None:
    weight = torch.randn(3, 16, generator=torch.Generator().manual_seed(0)) * 0.02
    model = SimpleNamespace(kind="classification", output=SimpleNamespace(weight=torch.nn.Parameter(weight)))
    run: Any = SimpleNamespace(model=model)
    source = replace(bundled, name="run:x", fingerprint="of the run")
    told: list[tuple[int, int]] = []
    found = outputs.of(source, run, lambda done, total: told.append((done, total)), at=tmp_path)
    assert found["what"] == "the output layer of the run's classification head"
    assert pairs(found)["definition", False] == pytest.approx(metrics.partition(weight.double().numpy()), rel=1e-10)
    assert found["each"] == pytest.approx(weight.norm(dim=1).tolist(), rel=1e-6) and told[-1] == (3, 3)


def test_zero_weights_have_no_scale(bundled: ModelSource) -> None:
    found = outputs.measure(np.zeros((2, 5), dtype=np.float32))
    assert pairs(found)["definition", False] == (1.0, 0.0)
    assert pairs(found)["definition", True] == (None, None)


def test_an_encoder_alone_says_so(tiny_models: TinyModels, tmp_path: Path) -> None:
    found = outputs.of(sources.resolve(str(tiny_models("bert"))), at=tmp_path)
    assert "encoder alone" in found["reason"]
