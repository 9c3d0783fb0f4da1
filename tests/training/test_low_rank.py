"""LoRA end to end on the bundled model: trained, stopped, resumed, and saved as a plain transformers directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import Event, Finished, Started, Stepped, Stopped
from isoviz.models import folding, low_rank, sources
from isoviz.models.adapter import load_network
from isoviz.models.low_rank import LowRank
from isoviz.models.wiring import wire
from isoviz.runs import planning
from isoviz.tasks.protocol import HeadKind
from isoviz.training import weights
from isoviz.training.loop import train
from isoviz.training.reload import reload
from tests.tiny import TinyModels
from tests.training import running

BERT, TASK = "demo/tiny-bert", "demo/acceptability"
SMALL = {"max_train": 48, "max_eval": 32, "probe_size": 32, "batch_size": 16, "epochs": 2, "threads": 1}


def planned(method: str = "baseline", model: str = BERT, task: str = TASK, **settings: Any) -> RunConfig:
    (config,) = planning.expand([model], [task], [(method, {})], [0], **{**SMALL, "lora_rank": 4, **settings})
    return config


def trained(config: RunConfig, folder: Path, stop: Callable[[list[Event]], bool], resume: bool = False) -> list[Event]:
    events: list[Event] = []
    train(config, events.append, lambda: stop(events), folder, resume)
    return events


def never(events: list[Event]) -> bool:
    return False


def after_two_steps(events: list[Event]) -> bool:
    return any(isinstance(event, Stepped) and event.step >= 2 for event in events)


def test_a_run_is_resumed_to_the_same_numbers_and_saved_with_merged_weights(tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    config = planned("istar", lora_dropout=0.1, learning_rate=5e-3)
    uninterrupted = trained(config, tmp_path / "whole", never)
    started = next(event for event in uninterrupted if isinstance(event, Started))
    assert started.trainable_parameters is not None and 0 < 5 * started.trainable_parameters < started.parameters

    assert isinstance(trained(config, tmp_path / "parts", after_two_steps)[-1], Stopped)
    resumed = trained(config, tmp_path / "parts", never, resume=True)
    for last in (uninterrupted[-1], resumed[-1]):
        assert isinstance(last, Finished)
    assert resumed[-1].metrics == uninterrupted[-1].metrics  # type: ignore[union-attr]
    assert resumed[-1].isotropy == uninterrupted[-1].isotropy  # type: ignore[union-attr]

    checkpoint = weights.newest(tmp_path / "parts")
    assert checkpoint is not None
    model, head = reload(config, checkpoint)
    texts = tasks.load(tasks.get(TASK), None, max_eval=16).validation["sentence"].tolist()
    inputs = head.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(inputs["input_ids"], inputs["attention_mask"]).logits
        folding.save(model, tmp_path / "saved")
        alone = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
        torch.testing.assert_close(alone(**inputs).logits, expected, atol=1e-5, rtol=1e-5)

    pretrained = dict(load_network(sources.resolve(BERT), 2, seed=0).named_parameters())
    saved = dict(alone.named_parameters())
    changed = {name for name, weight in saved.items() if not torch.equal(weight, pretrained[name])}
    assert any(".query." in name for name in changed) and any("classifier" in name for name in changed)
    assert not any(word in name for name in changed for word in (".key.", "embeddings", "intermediate"))


@pytest.mark.parametrize(
    ("family", "kind"), [("t5", "span"), ("modernbert", "classification"), ("distilbert", "classification")]
)
def test_families_for_which_peft_names_no_layers(family: str, kind: HeadKind, tiny_models: TinyModels) -> None:
    network = load_network(sources.resolve(str(tiny_models(family)), kind), 2, 0, kind, allow_random=True)
    low_rank.add(network, kind, LowRank(4, 16, 0.0), seed=0)
    assert all(weight.requires_grad for weight in wire(network, kind).output.parameters())
    frozen = sum(weight.numel() for weight in network.parameters() if not weight.requires_grad)
    assert 2 * frozen > sum(weight.numel() for weight in network.parameters())
    low_rank.merge(network)
    assert not any("lora_" in name for name, _ in network.named_parameters())


@pytest.mark.parametrize("targets", ["query, nonsense", "classifier", "uery"])
def test_names_that_are_no_layer_are_refused(targets: str, tmp_path: Path) -> None:
    wrong = rf"'{targets.split(', ')[-1]}' before its head \(it has dense, key, query, value\)"
    with pytest.raises(InputError, match=wrong) as e:
        trained(planned(lora_targets=targets), tmp_path, never)
    assert e.value.field == "lora_targets"


@pytest.mark.parametrize("method", ["spectrum_pol", "spectrum_exp"])
def test_methods_of_the_output_layer_are_refused_where_it_is_frozen(method: str) -> None:
    with pytest.raises(InputError, match=f"'{method}' acts on the output layer's weights, which LoRA freezes"):
        planned(method, "demo/tiny-bart", "demo/translation")
    assert planned(method).lora_rank == 4  # a classifier's output layer trains


@pytest.mark.parametrize("family", ["gpt2", "bert", "roberta"])
def test_frozen_weights_in_bfloat16_train_resume_and_merge(
    tiny_models: TinyModels, cola: Path, tmp_path: Path, family: str
) -> None:
    cfg = running.config(
        tiny_models(family), cola, "istar", lora_rank=2, epochs=2, learning_rate=2e-2, max_train=40, dtype="bfloat16"
    )
    whole = running.run(cfg, tmp_path / "whole")
    running.run(cfg, tmp_path / "parts", running.at_step(6))
    resumed = running.run(cfg, tmp_path / "parts", resume=True)
    assert whole[-1].kind == "finished" and resumed[-1].metrics == whole[-1].metrics
    stored = load_file(weights.newest(tmp_path / "whole") / "model.safetensors")  # type: ignore[operator]
    wide = {name for name, tensor in stored.items() if tensor.dtype == torch.float32}
    assert {tensor.dtype for tensor in stored.values() if tensor.is_floating_point()} == {torch.float32, torch.bfloat16}
    trained = ("lora_", "network.score", "network.classifier", "pooler", "method_state")
    assert all(any(part in name for part in trained) for name in wide)
    model, head = reload(cfg, weights.newest(tmp_path / "whole"))  # type: ignore[arg-type]
    with torch.no_grad():
        logits = model(**head.tokenizer(["w1 w2"], return_tensors="pt")).logits
    assert logits.dtype == torch.float32 and torch.isfinite(logits).all()
