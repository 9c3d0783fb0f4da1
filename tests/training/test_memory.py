"""Batches that do not fit: read in parts to the same gradients, from the newest checkpoint on, or refused with advice."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from accelerate import Accelerator

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import IsoVizError
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.training import heads, memory, processes
from isoviz.training.evaluation import EncodedSplits
from tests import tiny
from tests.training.running import config, of, run

SHORT = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB"


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Training steps of more than `rows` rows run out of memory, from the `after`-th pass of them on; `seen` counts passes."""
    limit = {"rows": 10**6, "after": 0, "seen": 0}
    plain = HeadedModel.forward

    def forward(self: HeadedModel, input_ids: Any, *args: Any, **options: Any) -> Any:
        if self.training:
            limit["seen"] += 1
            if len(input_ids) > limit["rows"] and limit["seen"] > limit["after"]:
                raise torch.OutOfMemoryError(SHORT)
        return plain(self, input_ids, *args, **options)

    monkeypatch.setattr(HeadedModel, "forward", forward)
    return limit


@pytest.mark.parametrize("kind", [kind for kind in tiny.TASKS if kind != "embedding"])
@pytest.mark.parametrize("parts", [3, 8])
def test_parts_add_up_to_the_whole_batch(tiny_models, tmp_path, kind, parts):
    processes.begin()
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    model_dir = tiny_models("bart" if kind == "seq2seq" else "bert")
    values = {"max_length": 24, "doc_stride": 8, "batch_size": 8, "threads": 1}
    cfg = RunConfig.checked(
        model=str(model_dir), task=tiny.TASKS[kind], data=str(tiny.write(kind, tmp_path / "data")), **values
    )
    task, source = tasks.get(cfg.task), sources.resolve(cfg.model)
    head = heads.head_for(task, load_tokenizer(source), cfg)
    rows = EncodedSplits(tasks.load(task, cfg.data), head, cfg, (0, 1))
    method = methods.get("spectrum_exp" if kind == "classification" else "baseline")
    model = HeadedModel(load_network(source, head.num_labels, 0, kind), method(method.Params()), kind).eval()
    batch = next(iter(rows.loader))
    batch.pop("item")
    results = []
    for count in (1, parts):
        model.zero_grad()
        terms = memory.backward(model, batch, count, kind == "seq2seq", accelerator)
        grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        results.append((terms, grads))
    (full_batch, expected), (terms, grads) = results
    assert list(terms) == list(full_batch)
    for name in full_batch:
        torch.testing.assert_close(terms[name], full_batch[name], rtol=1e-5, atol=1e-6)
    assert set(grads) == set(expected)
    for name in expected:
        torch.testing.assert_close(grads[name], expected[name], rtol=1e-4, atol=1e-6)


def test_a_run_continues_in_parts_to_the_same_numbers(tiny_models, cola, tmp_path, fits):
    model = tiny_models("bert", dropout=0.0)
    full_batches = run(config(model, cola, epochs=2), tmp_path / "whole")
    assert fits["seen"] == 16
    fits |= {"rows": 3, "after": 10, "seen": 0}  # it fits for an epoch, and no longer
    parts = run(config(model, cola, epochs=2), tmp_path / "parts")
    assert parts[-1].kind == "finished"
    assert [(event.step, event.epoch) for event in of(parts, "resumed")] == [(8, 1), (8, 1)]
    retries = [event.detail for event in of(parts, "entered") if "memory" in event.detail]
    assert retries == [f"Out of memory. Retrying with each batch split in {count}." for count in (2, 4)]
    one, other = (of(events, "stepped")[-1] for events in (full_batches, parts))
    assert other.step == one.step
    assert other.losses == pytest.approx(one.losses, rel=1e-3)
    assert parts[-1].metrics["loss"] == pytest.approx(full_batches[-1].metrics["loss"], rel=1e-3)


@pytest.mark.parametrize("slug", ["isobn", "istar"])
def test_what_depends_on_the_batch_fails_with_advice(tiny_models, cola, tmp_path, fits, slug):
    fits["rows"] = 4
    with pytest.raises(IsoVizError, match="out of memory with batches of 8 rows") as caught:
        run(config(tiny_models("bert"), cola, slug, epochs=1), tmp_path)
    assert caught.value.field == "batch_size"
    assert methods.get(slug).title in caught.value.advice
    assert "smaller batch size" in caught.value.advice
