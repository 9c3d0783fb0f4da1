"""Encoders by name: those of finished runs, and texts embedded by a model in memory as the big pass embeds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import ModelError
from isoviz.exploring import encoders, measuring, points
from isoviz.exploring.request import ViewRequest
from isoviz.models import sources
from isoviz.models.views import Pooling
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from isoviz.training import predictions
from tests.tiny import TinyModels, embed

TEXTS = [["w1 w2 w3", "w4", "w0 w9 w8 w7 w6 w5"]]


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store()
    yield opened
    opened.close()


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "tokens"])
def test_model_in_memory_embeds_as_the_pass_does(family: str, pooling: Pooling, tiny_models: TinyModels) -> None:
    name = str(tiny_models(family))
    embedded = encoders.load(name).embed(TEXTS, 1, pooling, 128)
    expected = embed(sources.resolve(name), TEXTS, pooling=pooling, layer=1)
    np.testing.assert_allclose(embedded.points, expected, atol=1e-5)
    assert len(embedded.texts) == len(embedded.points)
    assert len(embedded.tokens) == (len(embedded.points) if pooling == "tokens" else 0)


def test_a_decoders_run_reads_as_in_training(store: Store, tiny_models: TinyModels, cola: Path) -> None:
    settings = {"pooling": "mean", "max_length": 16, "lora_rank": 2, "epochs": 1, "learning_rate": 1e-2}
    config = RunConfig(model=str(tiny_models("gpt2")), task="glue/cola", data=str(cola), **settings)
    (id,) = store.create([config])
    assert execute(store, id).status == "finished"
    run = encoders.load_run(id, store)
    texts = tasks.load(tasks.get("glue/cola"), cola).validation["sentence"].tolist()
    saved = predictions.load(store.folder_of(id))
    assert saved is not None
    assert run.logits([texts], 64).argmax(axis=1).tolist() == saved.table["prediction"].tolist()
    ids = run.tokenizer(texts[0], return_tensors="pt")["input_ids"]
    states = run.model.network.base_model(input_ids=ids).last_hidden_state[0]
    np.testing.assert_allclose(run.head_points([texts[:1]], 64)[0], states.mean(dim=0).detach(), atol=1e-5)


@pytest.fixture(params=[None, "the judge said"])
def finished(store: Store, tiny_models: TinyModels, cola: Path, request: pytest.FixtureRequest) -> str:
    """A run of one epoch, really trained, without and with words before every text."""
    config = RunConfig(
        model=str(tiny_models("bert")),
        task="glue/cola",
        data=str(cola),
        method="isobn",
        epochs=1,
        batch_size=16,
        learning_rate=1e-2,
        prefix=request.param,
    )
    (id,) = store.create([config])
    assert execute(store, id).status == "finished"
    return id


def test_encoder_of_a_finished_run(finished: str, store: Store, tiny_models: TinyModels, cola: Path) -> None:
    name, base = f"run:{finished}", sources.resolve(str(tiny_models("bert")))
    source = encoders.resolve(name)
    assert source.fingerprint != base.fingerprint and encoders.has_weights(finished, store)
    request = ViewRequest(name, "glue/cola", str(cola))
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    before, plain = measuring.compute(replace(request, model=base.location), lambda done, total, text: None)
    assert facts["model_fingerprint"] == source.fingerprint and facts["entries"] != before["entries"]

    rows = points.unpacked(arrays[points.ROWS])
    prefix = store.get(finished).config.prefix
    assert ((rows["length"] > points.unpacked(plain[points.ROWS])["length"]) == (prefix is not None)).all()
    accuracy = (rows["prediction"] == rows["label"]).mean()
    result = store.get(finished).result
    assert result is not None and result.metrics["accuracy"] == pytest.approx(accuracy)
    assert ((rows["error"] < 0.5) == (rows["prediction"] == rows["label"])).all()

    texts = [tasks.load(tasks.get("glue/cola"), cola).validation["sentence"].tolist()]
    again = encoders.load(name).embed(texts, 2, "cls", 128)
    np.testing.assert_allclose(arrays["2.cls.cloud"], again.points, rtol=1e-3, atol=2e-3)

    for path in store.folder_of(finished).glob("checkpoints/*/model.safetensors"):
        path.unlink()
    assert not encoders.has_weights(finished, store)
    with pytest.raises(ModelError, match="weights of run"):
        encoders.resolve(name)


def test_unknown_and_unfinished_runs(store: Store, tiny_models: TinyModels) -> None:
    with pytest.raises(ModelError, match="run not found: 'nothing'"):
        encoders.resolve("run:nothing")
    config = RunConfig(model="demo/tiny-bert", task="demo/acceptability", method="baseline")
    (id,) = store.create([config])
    with pytest.raises(ModelError, match="queued; only a finished run"):
        encoders.resolve(f"run:{id}")
