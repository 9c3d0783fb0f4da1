"""A finished run's model, saved by the command line, gives its scores in a process that knows transformers alone."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from isoviz import tasks
from isoviz.__main__ import main
from isoviz.config import RunConfig
from isoviz.exploring import encoders
from isoviz.jobs import queue
from isoviz.runs import planning, pretrained
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from tests.jobs.here import work_here
from tests.tiny import TinyModels

ALONE = """
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
folder, texts = sys.argv[1], json.loads(sys.argv[2])
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder).eval()
with torch.no_grad():
    logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
assert not any(name.split(".")[0] == "isoviz" for name in sys.modules)
print(json.dumps({"logits": logits.tolist(), "labels": model.config.id2label}))
"""


@pytest.fixture
def finished(tmp_path: Path, tiny_models: TinyModels, cola: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    store = Store()
    (config,) = planning.expand(
        [str(tiny_models("bert"))], ["glue/cola"], [("isobn", {})], [0], data=str(cola), epochs=1, learning_rate=1e-2
    )
    (run_id,) = store.create([config])
    assert execute(store, run_id).status == "finished"
    return run_id


def test_the_same_logits_without_isoviz(finished, cola, tmp_path, capsys):
    out = tmp_path / "model"
    assert main(["runs", "save-model", finished, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == str(out)
    texts = tasks.load(tasks.get("glue/cola"), cola).validation["sentence"].tolist()
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(out), json.dumps(texts)], capture_output=True, text=True, check=True, cwd=tmp_path
    )  # fmt: skip
    printed = json.loads(done.stdout)
    expected = encoders.load_run(f"run:{finished}").logits([texts], 64)
    np.testing.assert_allclose(printed["logits"], expected, atol=1e-5)
    assert list(printed["labels"].values()) == list(tasks.get("glue/cola").label_names)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert finished in card and "| accuracy | " in card and "--method isobn" in card

    store = Store()
    request = pretrained.request(store.get(finished), store.folder_of(finished))
    key = queue.content_key(pretrained.SAVE, request)
    assert work_here(pretrained.SAVE, key, request).status == "done"
    result = pretrained.SAVE.results.find(key)
    assert result is not None
    with zipfile.ZipFile(io.BytesIO(result.arrays["archive"].tobytes())) as archive:
        assert set(archive.namelist()) == {path.name for path in out.iterdir()}
        assert archive.read("model.safetensors") == (out / "model.safetensors").read_bytes()

    assert main(["runs", "save-model", finished, "--out", str(out)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_run_without_weights_is_refused(tmp_path, capsys):
    (run_id,) = Store(tmp_path).create([RunConfig.checked(model="demo/tiny-bert", task="demo/acceptability")])
    words = ["runs", "save-model", run_id, "--store", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "has no model to save: it is queued" in capsys.readouterr().err
