"""Decoders trained with LoRA: stopped, resumed, reloaded, saved, and explored as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.models import folding, sources
from isoviz.models.adapter import load_network
from isoviz.training import predictions, weights
from isoviz.training.reload import reload
from tests.tiny import TinyModels
from tests.training import running

LORA = {"epochs": 2, "learning_rate": 2e-2, "lora_rank": 2, "max_train": 40}


def configured(tiny_models: TinyModels, family: str, data: Path, method: str = "istar", **settings: Any) -> RunConfig:
    return running.config(tiny_models(family), data, method, **{**LORA, **settings})


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_stopped_run_ends_as_an_uninterrupted_one_and_its_adapters_merge(
    tiny_models: TinyModels, cola: Path, tmp_path: Path, family: str
) -> None:
    from transformers import AutoModelForSequenceClassification

    cfg = configured(tiny_models, family, cola)
    whole = running.run(cfg, tmp_path / "whole")
    running.run(cfg, tmp_path / "parts", running.at_step(6))
    resumed = running.run(cfg, tmp_path / "parts", resume=True)
    assert resumed[-1].kind == whole[-1].kind == "finished"
    assert (resumed[-1].metrics, resumed[-1].isotropy) == (whole[-1].metrics, whole[-1].isotropy)
    (started,) = running.of(whole, "started")
    assert 0 < 5 * started.trainable_parameters < started.parameters

    checkpoint = weights.newest(tmp_path / "parts")
    assert checkpoint is not None
    model, head = reload(cfg, checkpoint)
    frame = tasks.load(head.task, cfg.data).validation
    with torch.no_grad():
        alone = [model(**head.tokenizer(text, return_tensors="pt")).logits for text in frame["sentence"]]
    scores = torch.cat(alone)
    stored = predictions.load(tmp_path / "parts")
    assert stored is not None and stored.table["prediction"].tolist() == scores.argmax(dim=1).tolist()
    np.testing.assert_allclose(stored.table["confidence"], scores.softmax(dim=1).max(dim=1).values, atol=1e-5)

    pretrained = dict(load_network(sources.resolve(cfg.model), 2, cfg.seed).named_parameters())
    merged = dict(model.network.named_parameters())
    changed = {name for name, weight in merged.items() if not torch.equal(weight, pretrained[name])}
    adapted = ("c_attn.weight",) if family == "gpt2" else ("q_proj.weight", "v_proj.weight")
    assert changed == {"score.weight"} | {name for name in merged if name.endswith(adapted)}

    # transformers alone finds each row's last token, padded by the saved tokenizer
    folding.save(model, tmp_path / "saved")
    library = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    with torch.no_grad():
        batch = head.tokenizer(frame["sentence"].tolist(), padding=True, return_tensors="pt")
        torch.testing.assert_close(library(**batch).logits, scores, atol=1e-5, rtol=1e-4)
