"""The output matrix of a run's head, of a vocabulary, of a model that has none; measured once per model."""

from __future__ import annotations

import json
from dataclasses import replace
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


def pairs(document: dict[str, Any]) -> dict[tuple[str, bool], tuple[float, float]]:
    return {(pair["convention"], pair["scale_free"]): (pair["i1"], pair["i2"]) for pair in document["pairs"]}


def test_a_vocabulary_is_measured_by_both_conventions(bundled: ModelSource) -> None:
    measured = outputs.of(bundled)
    weights = output_embeddings(bundled)
    assert weights is not None and (measured["rows"], measured["d"]) == weights.shape
    assert "language-model head" in measured["what"]
    for (convention, scale_free), pair in pairs(measured).items():
        expected = metrics.partition(weights.astype(float), convention=convention, scale_free=scale_free)  # type: ignore[arg-type]
        assert pair == pytest.approx(expected, rel=1e-10)
    assert len(measured["pairs"]) == 4
    lengths = np.linalg.norm(weights.astype(float), axis=1)
    assert measured["norms"]["mean"] == pytest.approx(lengths.mean()) and measured["norms"]["max"] == pytest.approx(
        lengths.max()
    )
    json.dumps(measured, allow_nan=False)


def test_it_is_measured_once_per_model(bundled: ModelSource, monkeypatch: pytest.MonkeyPatch) -> None:
    first = outputs.of(bundled)
    monkeypatch.setattr(outputs, "measure", lambda *_: pytest.fail("measured again"))
    assert outputs.of(bundled) == first


def test_a_runs_head_is_its_output_layer(bundled: ModelSource) -> None:
    weight = torch.randn(3, 16, generator=torch.Generator().manual_seed(0)) * 0.02
    model = SimpleNamespace(
        kind="classification", output=SimpleNamespace(weight=torch.nn.Parameter(weight), out_features=3)
    )
    run: Any = SimpleNamespace(model=model)
    source = replace(bundled, name="run:x", fingerprint="of the run")
    progress: list[tuple[int, int]] = []
    measured = outputs.of(source, run, lambda done, total: progress.append((done, total)))
    assert measured["what"] == "the output layer of the run's classification head"
    assert pairs(measured)["definition", False] == pytest.approx(metrics.partition(weight.double().numpy()), rel=1e-10)
    assert measured["norms"]["max"] == pytest.approx(weight.norm(dim=1).max().item(), rel=1e-6) and progress[-1] == (
        3,
        3,
    )


def test_an_encoder_alone_says_so(tiny_models: TinyModels) -> None:
    measured = outputs.of(sources.resolve(str(tiny_models("bert"))))
    assert "encoder alone" in measured["reason"]
