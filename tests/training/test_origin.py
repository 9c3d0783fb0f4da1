"""A resumed run uses the model and rows it started with, or says that they have changed."""

from __future__ import annotations

import json
import shutil

import pytest

from isoviz.errors import DataError, ModelError
from isoviz.models import sources
from isoviz.runs.execution import explain
from isoviz.training import checkpoints
from isoviz.training.reload import reload
from tests import tiny
from tests.hub_client import looking_at
from tests.loopback_hub import serving
from tests.training import running
from tests.training.running import at_step, run

NAME = "acme/tiny"


@pytest.fixture
def server(tmp_path, monkeypatch):
    with serving() as served, looking_at(served.endpoint, tmp_path / "cache", monkeypatch):
        yield served


@pytest.fixture
def data(tmp_path):
    return tiny.write_cola(tmp_path / "data", train=16, validation=8)


def config(model, data):
    return running.config(model, data, epochs=2)


def started(events):
    (start,) = [event for event in events if event.kind == "started"]
    return start


def test_a_commit_is_pinned_when_the_branch_has_moved(server, tiny_models, data, tmp_path):
    from huggingface_hub import hf_hub_download

    first = server.add(NAME, tiny_models("bert"))
    cfg = config(NAME, data)
    uninterrupted = run(cfg, tmp_path / "whole")
    interrupted = run(cfg, tmp_path / "run", at_step(1))
    assert interrupted[-1].kind == "stopped" and started(interrupted).model_revision == first
    moved = server.add(NAME, tiny_models("roberta"))
    hf_hub_download(NAME, "config.json")  # another program looks: in the cache, too, main is elsewhere now
    assert sources.resolve(NAME).revision == moved != first
    again = run(cfg, tmp_path / "run", resume=True)
    assert started(again).model_revision == first and again[-1].metrics == uninterrupted[-1].metrics
    # another machine, with an empty cache: that very commit is fetched
    interrupted = run(config(f"{NAME}@{first}", data), tmp_path / "other", at_step(1))
    shutil.rmtree(tmp_path / "cache" / "models--acme--tiny")
    again = run(cfg, tmp_path / "other", resume=True)
    assert started(again).model_revision == first and again[-1].metrics == uninterrupted[-1].metrics
    model, _ = reload(cfg, checkpoints.newest(tmp_path / "run"))  # what is looked at later is that commit's, too
    assert model.network.config.model_type == "bert"


def test_a_changed_folder_is_reported_with_advice(tiny_models, data, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_models("bert"), folder)
    cfg = config(folder, data)
    run(cfg, tmp_path / "run", at_step(1))
    before = sources.resolve(str(folder)).fingerprint
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | {"hidden_dropout_prob": 0.3}))
    with pytest.raises(ModelError, match=f"have changed since this run began .* the run's was {before}") as caught:
        run(cfg, tmp_path / "run", resume=True)
    message = explain(caught.value)
    assert "\n" not in message.message and "start a new run" in message.advice
    (folder / "config.json").write_text(json.dumps(about))
    assert sources.resolve(str(folder)).fingerprint != before  # the same settings, not the same file
    shutil.copy(tiny_models("bert") / "config.json", folder)
    assert run(cfg, tmp_path / "run", resume=True)[-1].kind == "finished"


def test_rows_that_changed_are_reported(tiny_models, data, tmp_path):
    cfg = config(tiny_models("bert"), data)
    run(cfg, tmp_path / "run", at_step(1))
    tiny.write_cola(data, train=24, validation=8)
    with pytest.raises(DataError, match="^data: the rows have changed since this run began") as caught:
        run(cfg, tmp_path / "run", resume=True)
    assert "a run cannot change its" in caught.value.advice
    assert run(cfg, tmp_path / "run")[-1].kind == "finished"  # restarted, it uses the current version
