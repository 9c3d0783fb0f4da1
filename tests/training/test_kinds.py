"""Each head kind on each family, end to end: it trains, evaluates, measures, saves, and reloads to the same logits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_model

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.events import Event
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_tokenizer
from isoviz.tasks import metrics
from isoviz.training import checkpoints, heads
from isoviz.training.evaluation import EncodedSplits
from isoviz.training.loop import train
from isoviz.training.reload import build
from tests import nightly, tiny
from tests.training import running
from tests.training.running import at_step, of, run

ENCODER_KINDS = ("classification", "regression", "span")
PAPERS = [(family, kind) for family in tiny.FAMILIES for kind in ENCODER_KINDS]
PAPERS += [(family, kind) for family in tiny.WRITERS for kind in (*ENCODER_KINDS, "seq2seq")]
SMOKE = [("electra", "classification"), ("deberta-v2", "regression"), ("modernbert", "span"), ("t5", "classification")]
SMOKE += [(family, "seq2seq") for family in tiny.LATER_WRITERS]
USUAL = [("bert", "classification"), ("albert", "regression"), ("roberta", "span"), ("distilbert", "classification")]
USUAL += [("bart", "span"), ("mbart", "seq2seq")]
"""Of the papers: each family, and each head kind."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("kinds")
    return {kind: tiny.write(kind, root / kind) for kind in tiny.TASKS}


def config(model: Path, folder: Path, kind: str, method: str = "baseline", **changes: Any) -> RunConfig:
    windows = {"max_length": 24, "doc_stride": 8} if kind == "span" else {}
    return running.config(model, folder, method, kind=kind, **({"epochs": 1} | windows | changes))


def reloaded(cfg: RunConfig, folder: Path | None, seed: int) -> tuple[HeadedModel, heads.Head, EncodedSplits]:
    """The run's model from its checkpoint (None: untrained), and its head and rows."""
    task = tasks.get(cfg.task)
    source = sources.resolve(cfg.model)
    head = heads.head_for(task, load_tokenizer(source, cfg.direction), cfg)
    model, _ = build(cfg.model_copy(update={"seed": seed}), source, head, allow_random=False)
    if folder is not None:
        newest = checkpoints.newest(folder)
        assert newest is not None
        load_model(model, str(newest / "model.safetensors"))
    data = tasks.load(task, cfg.data, cfg.direction, cfg.max_train, cfg.max_eval)
    rows = EncodedSplits(data, head, cfg, (0, 1))
    head.prepare(model, rows.train)
    return model.eval(), head, rows


def check(events: list[Event], cfg: RunConfig, folder: Path, kind: str) -> None:
    assert events[-1].kind == "finished"
    task = tasks.get(cfg.task)
    assert set(task.metrics) < set(events[-1].metrics)
    first, last = (event.loss for event in of(events, "evaluated"))
    assert math.isfinite(first)
    decoding = kind == "span" and Path(cfg.model).name.startswith(tiny.TWO_SIDED)
    assert last != first if kind == "classification" or decoding else last < first  # three steps teach it no words
    (started,) = of(events, "started")
    assert set(started.signatures) == ({"bleu", "chrf"} if kind == "seq2seq" else set())
    assert kind != "seq2seq" or started.signatures["bleu"].startswith("nrefs:1|case:mixed|")
    for measured in of(events, "measured"):
        clouds = measured.isotropy.clouds
        assert set(clouds) == {"head", "pooled", "layers", "layer_1", "layer_2"}
        for name in ("head", "pooled"):
            assert (clouds[name].n, clouds[name].drawn != "") == (12, kind in ("span", "seq2seq"))
        assert measured.isotropy.number("isoscore_star") is not None
        assert all(value is not None for value in measured.isotropy.by_layer("isoscore"))
    # what was saved is what was evaluated last: other new weights, then the checkpoint over them
    model, _, rows = reloaded(cfg, folder, seed=cfg.seed + 1)
    loss = count = 0.0
    with torch.no_grad():
        for batch in rows.part_of(rows.validation):
            batch.pop("item")
            outputs = model(**batch)
            loss, count = loss + float(outputs.terms["task"]) * outputs.count, count + outputs.count
    assert loss / count == pytest.approx(last, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kind"), nightly.cases([*PAPERS, *SMOKE], always=[*USUAL, *SMOKE]))
def test_end_to_end(tiny_models, data, tmp_path, family, kind):
    cfg = config(tiny_models(family), data[kind], kind, "isobn")
    events = run(cfg, tmp_path)
    check(events, cfg, tmp_path, kind)
    clouds = of(events, "measured")[-1].isotropy.clouds
    assert clouds["head"].number("isoscore") != clouds["pooled"].number("isoscore")


@pytest.mark.parametrize("kind", nightly.cases(["regression", "span", "seq2seq"], always=["seq2seq"]))
def test_stop_and_resume_give_the_uninterrupted_run(tiny_models, data, tmp_path, kind):
    cfg = config(tiny_models("bart" if kind == "seq2seq" else "bert"), data[kind], kind, "flow", epochs=2)
    uninterrupted = run(cfg, tmp_path / "whole")
    assert run(cfg, tmp_path / "parts", at_step(4))[-1].kind == "stopped"
    again = run(cfg, tmp_path / "parts", resume=True)
    assert again[-1].metrics == uninterrupted[-1].metrics
    assert again[-1].isotropy == uninterrupted[-1].isotropy


def test_answers_come_from_the_logits(tiny_models, data):
    """With logits that point at the gold positions, every answer that survived the windows is found."""
    cfg = config(tiny_models("bert"), data["span"], "span")
    _, head, rows = reloaded(cfg, None, 0)
    logits = []
    for labels, length in zip(rows.validation.labels, rows.validation.lengths, strict=True):
        start, end = torch.zeros(length).numpy(), torch.zeros(length).numpy()
        start[labels[0]] = end[labels[1]] = 5.0 if labels.any() else 0.0
        logits.append((start, end))
    full = metrics.compute(["f1"], [["w1"]], ["w1"], kind="span")["f1"]
    assert head.evaluate(rows.frame, head.answers(rows.frame, rows.validation, logits)) == {
        "f1": full,
        "exact_match": full,
    }
    wrong = head.answers(rows.frame, rows.validation, [(-a, -b) for a, b in logits])
    assert head.evaluate(rows.frame, wrong)["exact_match"] < full


def test_beams_and_length_reach_the_generation(tiny_models, data):
    greedy = reloaded(config(tiny_models("bart"), data["seq2seq"], "seq2seq"), None, 0)
    beams = reloaded(config(tiny_models("bart"), data["seq2seq"], "seq2seq", num_beams=4), None, 0)
    longest = max(map(len, greedy[2].train.labels))
    written = []
    for model, head, rows in (greedy, beams):
        batch = next(iter(rows.part_of(rows.validation)))
        batch.pop("item")
        with torch.no_grad():
            outputs = model(**batch)
            tokens = model.generate(batch["input_ids"], batch["attention_mask"], **head.generation)
            assert head.predict(model, outputs, batch) == [
                text.strip() for text in head.tokenizer.batch_decode(tokens, skip_special_tokens=True)
            ]
        assert tokens.shape[1] <= longest + 1
        assert (tokens[:, 1] == head.tokenizer.cls_token_id).all()  # what every target begins with
        written.append(tokens.tolist())
    assert written[0] != written[1]


@pytest.mark.parametrize("fifty", [False, True], ids=["mbart", "mbart-50"])
def test_mbart_writes_in_the_language_of_the_direction(data, tmp_path, fifty):
    folder = tiny.make_mbart(tmp_path / "model", fifty)
    for direction, codes in (("en-ro", ("en_XX", "ro_RO")), ("ro-en", ("ro_RO", "en_XX"))):
        cfg = config(folder, data["seq2seq"], "seq2seq", direction=direction)
        model, head, rows = reloaded(cfg, None, 0)
        read, written = (head.tokenizer.lang_code_to_id[code] for code in codes)
        position = 0 if fifty else -1
        assert {ids[position] for ids in rows.train.inputs["input_ids"]} == {read}
        assert {ids[position] for ids in rows.train.labels} == {written}
        batch = next(iter(rows.part_of(rows.validation)))
        tokens = model.generate(batch["input_ids"], batch["attention_mask"], **head.generation)
        assert set(tokens[:, 1 if fifty else 0].tolist()) == {written}
    assert run(cfg, tmp_path / "run")[-1].kind == "finished"
    with pytest.raises(ValueError, match="direction: .* has no language 'xq' \\(it has a"):
        load_tokenizer(sources.resolve(str(folder)), "en-xq")


@pytest.mark.parametrize("slug", list(methods.catalogue()))
def test_a_method_refuses_kinds_it_is_not_for(tiny_models, data, tmp_path, slug):
    method = methods.get(slug)
    for kind in tiny.TASKS:
        if kind in method.kinds:
            method.check_kind(kind)
            continue
        with pytest.raises(ValueError, match=rf"method: '{slug}' does not work on {kind} tasks \(allowed: ") as caught:
            train(config(tiny_models("bert"), data[kind], kind, slug), lambda event: None, lambda: False, tmp_path)
        assert caught.value.field == "method"


@pytest.mark.parametrize("kind", nightly.cases((*ENCODER_KINDS, "seq2seq"), always=("regression", "seq2seq")))
def test_bf16_stays_finite_and_trains(tiny_models, data, tmp_path, kind):
    model = tiny_models("bart" if kind == "seq2seq" else "bert")
    events = run(config(model, data[kind], kind, "isobn", precision="bf16", epochs=3), tmp_path)
    assert of(events, "started")[0].precision == "bf16"
    losses = [event.loss for event in of(events, "evaluated")]
    assert all(math.isfinite(value) for event in of(events, "stepped") for value in event.losses.values())
    assert min(losses[1:]) < losses[0]
    assert all(event.isotropy.number("isoscore_star") is not None for event in of(events, "measured"))
