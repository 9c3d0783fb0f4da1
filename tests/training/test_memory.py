"""Batches that do not fit: read in parts to the same gradients, from the newest checkpoint on, or refused with advice."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import IsoVizError
from isoviz.methods.protocol import Representations
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.tasks.protocol import HeadKind
from isoviz.training import heads, memory, processes
from isoviz.training.evaluation import EncodedSplits
from tests import tiny
from tests.methods.test_conformance import built, made, sentences
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
        terms = memory.backward(model, batch, count, accelerator, per_token=kind == "seq2seq")
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


CACHED: list[tuple[str, dict[str, Any], HeadKind]] = [
    ("baseline", {}, "embedding"),
    ("gor", {"lam": 1.0}, "embedding"),
    ("gor", {"lam": 1.0}, "classification"),
    ("sigreg", {"lam": 1.0}, "classification"),
    ("sigreg", {"lam": 1.0, "on": "tokens"}, "classification"),
    ("vicreg", {}, "embedding"),
    ("isobn", {}, "regression"),
    ("batchnorm", {}, "classification"),
    ("simcse", {}, "classification"),
    ("istar", {}, "embedding"),
    ("istar", {}, "seq2seq"),
    ("isobn", {}, "span"),
]


def joined(parts: list[Representations], back: torch.Tensor) -> Representations:
    """All fields of the parts in one graph."""
    whole: dict[str, Any] = {}
    for name in (field.name for field in fields(Representations)):
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], tuple):
            whole[name] = tuple(torch.cat(layer)[back] for layer in zip(*values, strict=True))
        elif isinstance(values[0], torch.Tensor) and name != "output_weight":
            whole[name] = torch.cat(values) if len(values[0]) != len(parts[0].cls) else torch.cat(values)[back]
        else:
            whole[name] = values[0]
    return Representations(**whole)


@pytest.mark.parametrize("parts", [2, 3, 8])
@pytest.mark.parametrize(("slug", "params", "kind"), CACHED, ids=lambda value: value if isinstance(value, str) else "")
def test_cached_gradients_are_those_of_the_whole_batch(tiny_models, monkeypatch, slug, params, kind, parts):
    """Without dropout those of one pass; with it, those of a pass through each part, all of them in one graph."""
    processes.begin()
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    batch = sentences(rows=14, kind=kind)
    plain = HeadedModel.represent
    for dropout in (0.0, 0.2):
        models = [built(tiny_models, made(slug, **params), dropout=dropout, kind=kind).train() for _ in range(2)]
        by_length = not (models[0].hooks.reads_tokens() or models[0].per_token)
        order = batch["attention_mask"].sum(dim=1).argsort(stable=True) if by_length else torch.arange(14)

        def in_parts(self: HeadedModel, *given: Any) -> Representations:
            split = [[None if v is None else v[items] for v in given] for items in order.chunk(parts)]  # noqa: B023
            return joined([plain(self, *values) for values in split], order.argsort())  # noqa: B023

        results = []
        for model, count in zip(models, (1, parts), strict=True):
            torch.manual_seed(5)
            with monkeypatch.context() as patch:
                if dropout and count == 1:
                    patch.setattr(HeadedModel, "represent", in_parts)
                terms = memory.backward(model, batch, count, accelerator, together=True)
            grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
            results.append((terms, grads, dict(model.named_buffers()), {"generator": torch.get_rng_state()}))
        for expected, found in zip(*results, strict=True):
            assert expected.keys() == found.keys()
            for name, value in expected.items():
                torch.testing.assert_close(found[name], value, rtol=1e-4, atol=2e-6, msg=f"{name} at dropout {dropout}")


@pytest.mark.parametrize("slug", ["isobn", "istar"])
def test_a_run_whose_rows_count_together_continues_with_cached_gradients(tiny_models, cola, tmp_path, fits, slug):
    cfg = config(tiny_models("bert", dropout=0.0), cola, slug, epochs=1)
    full_batches = run(cfg, tmp_path / "whole")
    set_up = run(cfg.model_copy(update={"micro_batch": 3}), tmp_path / "set-up")
    fits |= {"rows": 4, "seen": 0}
    parts = run(cfg, tmp_path / "parts")
    assert [event.detail for event in of(parts, "entered") if "memory" in event.detail]
    for events in (set_up, parts):
        one, other = (of(run_events, "stepped")[-1] for run_events in (full_batches, events))
        assert other.step == one.step and other.losses == pytest.approx(one.losses, rel=1e-3)
        assert events[-1].metrics["loss"] == pytest.approx(full_batches[-1].metrics["loss"], rel=1e-3)


@pytest.mark.parametrize("together", [True, False])
def test_what_does_not_fit_row_by_row_fails_with_advice(together):
    for parts, count in ((8, 1), (1, 2)):
        with pytest.raises(IsoVizError, match="out of memory with batches of 8 rows") as caught:
            memory.more_parts(parts, RunConfig(batch_size=8), together, count)
        assert caught.value.field == "batch_size"
        # accumulation does not replace a larger batch where rows are compared
        assert ("accumulation" in str(caught.value.advice)) != together
