"""A trained run: its embeddings give its predictions; jobs, keys, the notebook code, an IsoLayer trained on demand."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isoviz import metrics, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.exploring import encoders
from isoviz.jobs import queue
from isoviz.runs.store import Store
from isoviz.whatif import chains, embeddings
from isoviz.whatif.embeddings import ENCODING, load
from isoviz.whatif.engine import WhatIf, train_layer
from isoviz.whatif.images import NotReadyError
from isoviz.whatif.request import STORE, LayerRequest, _key, refuse_kind, request_for
from tests.jobs.here import work_here
from tests.tiny import TinyModels
from tests.whatif.trained import train


@pytest.fixture(scope="module")
def original(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A home with a baseline run and an IsoBN run, both read."""
    home = tmp_path_factory.mktemp("trained")
    return home, train(home, tiny_models), train(home, tiny_models, "isobn", max_train=64, max_eval=40)


@pytest.fixture
def runs(original: tuple[Path, str, str], tmp_path: Path) -> tuple[str, str]:
    """The ids of both, in this test's own home."""
    home, *ids = original
    shutil.copytree(home, tmp_path / "home")
    return ids[0], ids[1]


def test_the_frozen_head_predicts_what_the_run_predicted(runs):
    store = Store(None)
    for run, rows in zip(runs, ((96, 48), (64, 40)), strict=True):
        stored = embeddings(run)
        assert (len(stored.train), len(stored.validation)) == rows
        assert (stored.head.predict(stored.validation.astype(np.float64)) == stored.predicted).all()
        for name, value in stored.facts["metrics"].items():
            assert value == pytest.approx(store.get(run).result.metrics[name])
        assert stored.frozen_metric(stored.validation) == pytest.approx(
            stored.facts["metrics"][stored.facts["primary"]]
        )
        isotropy = store.get(run).result.isotropy
        assert metrics.isoscore(stored.validation) == pytest.approx(isotropy.number("isoscore"), rel=1e-4)


def test_both_clouds_where_the_method_changes_the_vector(runs):
    baseline, isobn = embeddings(runs[0]), embeddings(runs[1])
    assert not baseline.differs and isobn.differs
    before = embeddings(runs[1], cloud="pooled")
    factors = isobn.train[0] / before.train[0]
    np.testing.assert_allclose(before.train * factors, isobn.train, rtol=1e-4)
    with pytest.raises(InputError, match="cloud: no cloud 'layers'"):
        embeddings(runs[1], cloud="layers")  # type: ignore[arg-type]


def test_texts_and_labels_match_the_rows(runs):
    stored = embeddings(runs[1])
    config = Store(None).get(runs[1]).config
    data = tasks.load(tasks.get(config.task), config.data)
    assert stored.texts == data.validation["sentence"].iloc[:40].tolist()
    assert stored.labels.tolist() == data.validation["label"].iloc[:40].tolist()
    chosen = np.sort(np.random.default_rng(0).choice(96, size=64, replace=False))  # as the training loop chooses
    assert stored.train_labels.tolist() == data.train["label"].iloc[chosen].tolist()


def test_a_run_that_reports_its_best_epoch_is_read_at_it(tiny_models, tmp_path, monkeypatch):
    """Metrics, isotropy and head of the reported epoch, here and in Explore."""
    home = tmp_path / "home"
    changes: dict[str, object] = {"epochs": 4, "learning_rate": 0.08, "schedule": "constant", "select": "best"}
    store = Store(home)
    ids = (train(home, tiny_models, read=False, seed=seed, **changes) for seed in range(8))
    row = next(row for row in map(store.get, ids) if row.result.metrics["epoch"] < 4)
    epoch = row.result.metrics["epoch"]
    assert row.result.weights.epoch == epoch
    stored = embeddings(row.id)
    assert stored.facts["epoch"] == epoch and stored.facts["notes"] == []
    for name, value in stored.facts["metrics"].items():
        assert value == pytest.approx(row.result.metrics[name]), name
    assert metrics.isoscore(stored.validation) == pytest.approx(row.result.isotropy.number("isoscore"), rel=1e-4)
    assert metrics.mean_cosine(stored.validation) == pytest.approx(row.result.isotropy.number("mean_cosine"), abs=1e-5)

    logits = encoders.load_run(f"run:{row.id}", store).logits([stored.texts], 128)
    assert (logits.argmax(axis=1) == stored.predicted).all()
    np.testing.assert_allclose(logits, stored.validation @ stored.head.weight.T + stored.head.bias, atol=1e-4)

    folder = store.folder_of(row.id)
    store.delete(row.id)
    assert not folder.exists()


def test_the_key_is_of_the_content(runs):
    store = Store(None)
    request = request_for(store.get(runs[0]), store.folder_of(runs[0]))
    before = request.key
    assert request_for(store.get(runs[0]), store.folder_of(runs[0])).key == before == embeddings(runs[0]).key
    assert replace(request, rows=9).key != before
    file = Path(request.checkpoint) / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert request.key != before


def test_unfinished_runs_and_missing_checkpoints_are_refused(runs):
    store = Store(None)
    row = store.get(runs[0])
    with pytest.raises(InputError, match="is stopped; What-if needs a finished run"):
        request_for(replace(row, status="stopped"), store.folder_of(runs[0]))
    request = request_for(row, store.folder_of(runs[0]))
    (Path(request.checkpoint) / "model.safetensors").unlink()
    with pytest.raises(InputError, match=f"the checkpoint of '{runs[0]}' no longer exists"):
        request_for(row, store.folder_of(runs[0]))
    with pytest.raises(InputError, match="is a span task; What-if works on classification and regression"):
        refuse_kind(RunConfig(task="squad"))


def test_a_job_reads_in_a_process_of_its_own(runs):
    store = Store(None)
    request = request_for(store.get(runs[0]), store.folder_of(runs[0]))
    shutil.rmtree(STORE.root / "results")
    assert queue.look(ENCODING, request.key).status == "none"
    assert work_here(ENCODING, request.key, request.as_json()).status == "done"  # the process's work, in this one
    assert queue.start(ENCODING, request.key, request.as_json()).status == "done"  # existing results start nothing
    assert load(request.key).train.shape == (96, 16)


def test_an_isolayer_is_trained_on_the_spot(runs):
    stored = embeddings(runs[0])
    engine = WhatIf(stored)
    steps = chains.read("scale:factor=3~isolayer:alpha=0.5")
    with pytest.raises(NotReadyError) as waiting:
        engine.answer(steps)
    request = waiting.value.request
    assert isinstance(request, LayerRequest) and request.before == "scale:factor=3"
    older = _key(what="layer", format=2, **request.as_json())  # whose arrays have other names
    STORE.publish(older, {}, {"linear": np.eye(16), "offset": np.zeros(16)})
    with pytest.raises(NotReadyError):
        engine.answer(steps)
    progress: list[int] = []
    facts, arrays = train_layer(request, lambda done, total, text: progress.append(done))
    STORE.publish(request.key, facts, arrays)
    assert progress and progress == sorted(progress)
    with pytest.raises(NotReadyError) as waiting:  # there, but the points have to be taken through it
        engine.answer(steps, build=False)
    assert waiting.value.request is None
    answer = engine.answer(steps)
    after = 3 * stored.validation.astype(np.float64) @ arrays["matrix"] + arrays["offset"]
    assert answer.measures["isoscore"] == pytest.approx(metrics.isoscore(after), rel=1e-9)
    assert answer.measures["isoscore"] > engine.answer(()).measures["isoscore"]
    again = stored.isolayer(alpha=0.5).fit(3 * stored.train.astype(np.float64))
    np.testing.assert_allclose(again.affine().matrix, arrays["matrix"], atol=1e-6)
    assert again.transform(stored.validation[:3]).shape == (3, 16)
    with pytest.raises(InputError, match="needs all 96 training rows"):
        stored.isolayer().fit(stored.train[:10])
    with pytest.raises(InputError, match="reads 16 numbers, not 5"):
        stored.isolayer().fit(stored.train[:, :5])
