"""A complete run on a tiny encoder: it learns, and reports what the design asks for (stopping and resuming: test_resume.py)."""

from __future__ import annotations

import math
import shutil

import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file, save_file

from isoviz.errors import DivergedError, InputError, ModelError
from isoviz.events import Event, parse_event
from isoviz.training.loop import train
from tests.training.running import config, of, run

CHOICES = [("isobn", {"beta": 0.5}), ("istar", {"lam": 1.0})]


@pytest.mark.parametrize(("method", "params"), CHOICES)
def test_a_run_reports_everything_in_order(tiny_models, cola, tmp_path, method, params):
    events = run(config(tiny_models("bert"), cola, method, params), tmp_path)
    assert events[-1].kind == "finished"
    assert [e.epoch for e in of(events, "measured")] == [0, 1, 2, 3]
    assert [e.epoch for e in of(events, "evaluated")] == [0, 1, 2, 3]
    assert [e.step for e in of(events, "checkpointed")] == [8, 16, 24]
    started = of(events, "started")[0]
    assert (started.total_steps, started.train_rows, started.eval_rows) == (24, 64, 32)
    assert started.baselines == {"majority": 0.0}
    assert {"isoviz", "torch", "transformers", "accelerate"} == set(started.versions)
    stepped = of(events, "stepped")
    assert [e.step for e in stepped] == list(range(1, 25))
    expected_terms = {"task", "total"} | ({method} if method in ("istar", "cosreg") else set())
    assert set(stepped[0].losses) == expected_terms
    for event in stepped:
        assert event.losses["total"] == pytest.approx(sum(v for k, v in event.losses.items() if k != "total"), rel=1e-5)
    measured = of(events, "measured")[-1]
    assert {name: (c.n, c.d) for name, c in measured.isotropy.clouds.items() if name in ("head", "pooled")} == {
        "head": (32, 16),
        "pooled": (32, 16),
    }
    words = pd.read_parquet(cola / "validation.parquet")["sentence"].str.split().str.len()
    # two layers; [CLS] and [SEP] count, padding does not
    assert measured.isotropy.clouds["layers"].n == 2 * (words.sum() + 2 * 32)
    assert len(measured.isotropy.by_layer("isoscore")) == 2
    assert 0 < measured.isotropy.number("isoscore_star") < 1
    arrays = load_file(tmp_path / measured.arrays)
    assert arrays["abs_correlation"].shape == (16, 16)
    assert sorted(arrays["order"].tolist()) == list(range(16))
    finished = events[-1]
    assert finished.isotropy == measured.isotropy
    assert {"train_seconds", "seconds_per_epoch", "samples_per_second", "startup_seconds"} <= set(finished.timing)
    parts = [finished.timing[f"{name}_seconds"] for name in ("startup", "train", "evaluate", "measure")]
    assert min(parts) > 0 and sum(parts) <= finished.timing["total_seconds"]
    spent = [e.timing for e in of(events, "measured")]
    for name, last in spent[-1].items():  # so far, and in the end the run's
        assert [t[name] for t in spent] == sorted(t[name] for t in spent) and last == finished.timing[name]
    assert spent[0]["train_seconds"] == 0 < spent[0]["measure_seconds"] < spent[1]["measure_seconds"]
    for event in events:  # stored values are read back
        assert parse_event(event.model_dump(mode="json")).kind == event.kind


def test_divergence_names_the_term_and_the_step(tiny_models, cola, tmp_path, monkeypatch):
    cross_entropy = torch.nn.functional.cross_entropy
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        if event.kind == "stepped" and event.step == 5:  # from now on the loss overflows
            monkeypatch.setattr(torch.nn.functional, "cross_entropy", lambda *args: cross_entropy(*args) * math.inf)

    with pytest.raises(DivergedError, match="'task' became non-finite at step 6") as caught:
        train(config(tiny_models("bert"), cola), emit, lambda: False, tmp_path)
    assert "learning rate" in caught.value.advice
    assert [e.epoch for e in of(events, "evaluated")] == [0]  # what was measured before is kept


def test_accumulation_gives_the_large_batchs_step(tiny_models, cola, tmp_path):
    # the mean of two half batches' gradients is the whole batch's; without dropout the weights agree
    model = tiny_models("bert", dropout=0.0)
    common = {"batching": "shuffled", "epochs": 1, "weight_decay": 0.0, "max_train": 64}
    large_batch = run(config(model, cola, batch_size=16, **common), tmp_path / "whole")
    parts = run(config(model, cola, batch_size=8, grad_accum=2, **common), tmp_path / "parts")
    assert len(of(large_batch, "stepped")) == len(of(parts, "stepped")) == 4
    for one, other in zip(of(large_batch, "stepped"), of(parts, "stepped"), strict=True):
        assert one.losses["task"] == pytest.approx(other.losses["task"], rel=1e-4)
    assert large_batch[-1].isotropy.number("isoscore") == pytest.approx(parts[-1].isotropy.number("isoscore"), rel=1e-3)


def test_a_checkpoint_that_lacks_weights_is_refused_or_marks_every_result(tiny_models, cola, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_models("bert"), folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({f"other.{name}": tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    with pytest.raises(ModelError, match="encoder weights are missing"):
        run(config(folder, cola, epochs=1), tmp_path / "refused")
    events = run(config(folder, cola, epochs=1, allow_random=True), tmp_path / "allowed")
    assert of(events, "started")[0].notes[0].startswith("random weights: ")
    assert "encoder weights are missing" in events[-1].random_weights
    again = run(config(tiny_models("bert"), cola, epochs=1, allow_random=True), tmp_path / "whole")
    assert again[-1].random_weights == "" and of(again, "started")[0].notes == []


def test_a_tokenizer_that_knows_few_words_needs_a_switch(tiny_models, cola, tmp_path):
    for split in ("train", "validation"):
        path = next(cola.glob(f"{split}.*"))
        table = pd.read_parquet(path)
        table["sentence"] = [f"ένα δύο {number}" for number in range(len(table))]
        table.to_parquet(path)
    with pytest.raises(InputError, match="does not know 100%") as refused:
        run(config(tiny_models("bert"), cola, epochs=1), tmp_path / "refused")
    assert refused.value.field == "model" and "--allow-unknown" in str(refused.value.advice)
    notes = of(run(config(tiny_models("bert"), cola, epochs=1, allow_unknown=True), tmp_path / "run"), "started")[
        0
    ].notes
    assert len(notes) == 2
    assert "rows also appear in train" in notes[0] and "does not know 100%" in notes[1]
