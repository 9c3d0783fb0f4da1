"""The command line: exit codes, one JSON document on stdout, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from isoviz.__main__ import main
from isoviz.config import RunConfig
from isoviz.runs.store import Store


@pytest.fixture
def here(capsys):
    """Run a command in this process and return its stdout; a separate process would take seconds."""

    def run(*words):
        capsys.readouterr()
        assert main([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def small(tiny_models, cola):
    """Options of a run that takes a second."""
    return ["--model", str(tiny_models("bert")), "--task", "glue/cola", "--data", str(cola), "--epochs", "1",
            "--lr", "5e-3", "--batch-size", "8", "--threads", "1"]  # fmt: skip


def test_train_gives_one_json_document_and_the_store_agrees(small, tmp_path, here):
    store = str(tmp_path / "store")
    words = ["train", *small, "--method", "isobn", "--set", "beta=1", "--seeds", "0", "1", "--store", store, "--json"]
    runs = json.loads(here(*words))["runs"]
    assert [run["status"] for run in runs] == ["finished", "finished"]
    assert [run["config"]["seed"] for run in runs] == [0, 1]
    assert runs[0]["config"]["params"]["beta"] == 1.0
    assert set(runs[0]["metrics"]) >= {"matthews", "accuracy"}
    isotropy = runs[0]["isotropy"]
    named = ("isoscore", "isoscore_star", "isoscore_unbiased", "ev", "mean_cosine", "twonn", "i1", "i2", "by_layer")
    assert set(isotropy) >= set(named)
    assert len(isotropy["by_layer"]) == 2
    assert [cloud["cloud"] for cloud in isotropy["by_layer_clouds"]] == ["layer_1", "layer_2"]
    assert isotropy["isoscore_star_cloud"]["zeta"] == 0.2
    assert runs[0]["collapsed"] is None or runs[0]["collapsed"] == "predicts one class"
    assert runs[0]["baselines"]["majority"] is not None
    assert set(runs[0]["timing"]) >= {"train_seconds", "seconds_per_epoch", "samples_per_second", "startup_seconds"}

    listed = json.loads(here("runs", "list", "--store", store, "--json"))["runs"]
    assert {run["id"] for run in listed} == {run["id"] for run in runs}
    shown = json.loads(here("runs", "show", runs[0]["id"], "--store", store, "--json"))["runs"][0]
    assert shown["isotropy"] == isotropy
    assert shown["provenance"]["data_fingerprint"] and shown["provenance"]["model_fingerprint"]
    assert shown["provenance"]["data_revision"] is None  # files have no commit
    assert shown["provenance"]["signatures"] == {}
    exported = json.loads(here("runs", "export", *[run["id"] for run in runs], "--store", store, "--json"))["runs"]
    assert [event["kind"] for event in exported[0]["events"]][-1] == "finished"
    here("runs", "delete", runs[0]["id"], "--store", store)
    assert len(json.loads(here("runs", "list", "--store", store, "--json"))["runs"]) == 1


def test_sweep_plans_the_grid(small, tmp_path, here):
    grid = ["--method", "istar", "--grid", "lam=-1,1", "--grid", "zeta=0.2,0.8"]
    printed = here("sweep", *small, *grid, "--queue", "--store", str(tmp_path / "s"), "--json")
    runs = json.loads(printed)["runs"]
    params = [run["config"]["params"] for run in runs]
    assert [(p["lam"], p["zeta"]) for p in params] == [(-1.0, 0.2), (-1.0, 0.8), (1.0, 0.2), (1.0, 0.8)]
    rows = Store(tmp_path / "s").list()
    assert {row.id for row in rows} == {run["id"] for run in runs} and {row.status for row in rows} == {"queued"}
    assert {row.owner for row in rows} == {None} and len({row.group for row in rows}) == 1


def test_human_text_goes_to_stdout_progress_to_stderr(small, tmp_path, capsys):
    assert main(["train", *small, "--store", str(tmp_path / "s")]) == 0
    printed, progress = capsys.readouterr()
    assert "finished" in printed and "isoscore " in printed
    assert "epoch 1" in progress and "epoch 1" not in printed and "Traceback" not in progress


def test_a_reader_that_has_enough_ends_the_command(tmp_path):
    Store(tmp_path).create([RunConfig(seed=seed) for seed in range(1500)])
    command = [sys.executable, "-m", "isoviz", "runs", "list", "--limit", "0", "--store", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        assert "queued" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_pipe_that_breaks_elsewhere_is_a_bug_and_keeps_its_traceback(monkeypatch, capfd):
    def broken(_: object) -> int:
        raise BrokenPipeError

    parser = SimpleNamespace(parse_args=lambda words: SimpleNamespace(execute=broken))
    monkeypatch.setattr("isoviz.__main__.build_parser", lambda words: parser)
    with pytest.raises(BrokenPipeError):
        main(["doctor"])
