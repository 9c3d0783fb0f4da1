"""A run that was stopped or killed anywhere, resumed, is the uninterrupted run: every event, every number, every weight."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from isoviz.config import RunConfig
from isoviz.events import Event, Resumed, parse_event
from isoviz.runs.execution import execute
from isoviz.runs.recovery import lost
from isoviz.runs.store import Store
from isoviz.training import checkpoints
from isoviz.training.loop import train
from tests import nightly, tiny
from tests.methods.test_conformance import OF_THE_NIGHT, SLUGS
from tests.tiny import TinyModels
from tests.training import running
from tests.training.running import at_step, run

ROOT = Path(__file__).resolve().parents[2]
PARAMS: dict[str, dict[str, object]] = {"isolayer": {"layer_epochs": 3, "layer_batch": 16}}
_VARYING = {"samples_per_second", "eta_seconds", "step_seconds", "startup_seconds", "timing"}
_NOT_RESULTS = {"entered", "started", "resumed", "checkpointed", "stopped"}


def config(model: Path, data: Path, method: str = "baseline", **changes: Any) -> RunConfig:
    """Two epochs of 8 optimiser steps, each of two batches."""
    values: dict[str, Any] = {"epochs": 2, "batch_size": 4, "grad_accum": 2, "select": "best"} | changes
    return running.config(model, data, method, PARAMS.get(method), **values)


@pytest.fixture(scope="module")
def istar(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, Path, list[Event]]:
    """A configuration that leaves a checkpoint after each step, and the folder and events of the run without interruption."""
    root = tmp_path_factory.mktemp("istar")
    cfg = config(tiny_models("bert"), tiny.write_cola(root / "cola"), "istar")
    return cfg.model_copy(update={"checkpoint_minutes": 1e-9}), root / "whole", run(cfg, root / "whole")


def results(*attempts: list[Event]) -> list[dict[str, Any]]:
    """What a reader keeps: facts of earlier attempts that a `Resumed` makes void are dropped, times and phases too."""
    lasting: list[dict[str, Any]] = []
    for event in (event for events in attempts for event in events):
        if isinstance(event, Resumed):
            lasting = [earlier for earlier in lasting if earlier["step"] <= event.step]
        elif event.kind not in _NOT_RESULTS:
            lasting.append(event.model_dump(mode="json", exclude=_VARYING))
    return lasting


def weights(folder: Path) -> dict[str, torch.Tensor]:
    newest = checkpoints.newest(folder)
    assert newest is not None
    return load_file(newest / "model.safetensors")


def assert_same(uninterrupted: Path, parts: Path, expected: list[Event], *attempts: list[Event]) -> None:
    actual, expected_results = results(*attempts), results(expected)
    assert [(event["kind"], event.get("step")) for event in actual] == [
        (e["kind"], e.get("step")) for e in expected_results
    ]
    assert actual == expected_results
    ours, reference = weights(parts), weights(uninterrupted)
    assert ours.keys() == reference.keys() and all(torch.equal(ours[name], reference[name]) for name in reference)
    assert len(list((parts / "checkpoints").iterdir())) == 1  # a finished run keeps one model


@pytest.mark.slow
@pytest.mark.parametrize("slug", nightly.cases(SLUGS, always={*SLUGS} - OF_THE_NIGHT | {"isolayer"}))
def test_stopped_in_mid_epoch_by_any_method(tiny_models, cola, tmp_path, slug):
    cfg = config(tiny_models("bert"), cola, slug)
    uninterrupted = run(cfg, tmp_path / "whole")
    first = run(cfg, tmp_path / "parts", at_step(11))
    assert (first[-1].kind, first[-1].step) == ("stopped", 11)
    second = run(cfg, tmp_path / "parts", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "parts", uninterrupted, first, second)


@pytest.mark.nightly
def test_stopped_anywhere_else(istar, tmp_path):
    """While loading, before the first step, at an epoch's end, while evaluating: again and again in one run."""
    cfg, whole, uninterrupted = istar
    cfg = cfg.model_copy(update={"checkpoint_minutes": 0})
    stops: list[tuple[Callable[[Event], bool], int]] = [
        (lambda event: event.kind == "entered" and event.phase == "tokenising", 0),
        (lambda event: event.kind == "entered" and event.phase == "evaluating", 0),
        (lambda event: event.kind == "measured" and event.epoch == 0, 0),
        (at_step(3), 3),
        (lambda event: event.kind == "started", 3),  # nothing done since: the same checkpoint
        (at_step(8), 8),
        (lambda event: event.kind == "measured" and event.epoch == 1, 8),
        (at_step(9), 9),
        (lambda event: event.kind == "entered" and event.phase == "tokenising", 9),
        (at_step(16), 16),
    ]
    attempts: list[list[Event]] = []
    for stop_when, step in stops:
        attempts.append(run(cfg, tmp_path / "parts", stop_when, resume=bool(attempts)))
        assert (attempts[-1][-1].kind, attempts[-1][-1].step) == ("stopped", step)
    attempts.append(run(cfg, tmp_path / "parts", resume=True))
    assert_same(whole, tmp_path / "parts", uninterrupted, *attempts)


def test_stopped_while_measuring(tiny_models, cola, tmp_path):
    cfg = config(tiny_models("bert"), cola, "isobn")
    uninterrupted = run(cfg, tmp_path / "whole")
    first = run(
        cfg, tmp_path / "parts", lambda event: getattr(event, "phase", "") == "measuring" and "1" in event.detail
    )
    assert (first[-1].kind, first[-1].step) == ("stopped", 8)
    second = run(cfg, tmp_path / "parts", resume=True)
    first = [event for event in first if (event.kind, getattr(event, "epoch", 0)) != ("evaluated", 1)]  # it comes again
    assert_same(tmp_path / "whole", tmp_path / "parts", uninterrupted, first, second)


def test_a_checkpoint_is_due_by_time(tiny_models, cola, tmp_path, monkeypatch):
    """A clock that moves a minute per step; a checkpoint inside an epoch every three, and after each epoch."""
    cfg = config(tiny_models("bert"), cola, checkpoint_minutes=3)
    minutes = [0.0]
    monkeypatch.setattr("isoviz.training.loop.time.perf_counter", lambda: 60.0 * minutes[0])
    sizes: list[int] = []

    def emit(event: Event) -> None:
        events.append(event)
        minutes[0] += event.kind == "stepped"
        if event.kind == "checkpointed":
            sizes.append(len(list((tmp_path / "run" / "checkpoints").iterdir())))

    events: list[Event] = []
    train(cfg, emit, lambda: False, tmp_path / "run")
    assert [event.step for event in events if event.kind == "checkpointed"] == [3, 6, 8, 11, 14, 16]
    assert sizes == [1, 2, 2, 2, 3, 3]  # the last two; later also the best epoch's weights
    after_saving = [events[index + 2] for index, event in enumerate(events) if getattr(event, "phase", "") == "saving"]
    assert [getattr(event, "phase", event.kind) for event in after_saving[:3]] == ["training", "training", "evaluating"]


KILLED = """
import json, os, signal, sys
from pathlib import Path
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from isoviz.training.loop import train

def killed(config, emit, should_stop, run_dir, resume=False):
    def tell(event):
        emit(event)
        if (event.kind, getattr(event, "step", 0)) == ("stepped", 11):
            os.kill(os.getpid(), signal.SIGKILL)
    train(config, tell, should_stop, run_dir, resume)

execute(Store(sys.argv[1]), sys.argv[2], train=killed)
"""


@pytest.mark.nightly
def test_killed_between_two_checkpoints(istar, tmp_path):
    """Every step leaves a checkpoint. Killed after a step and before its checkpoint, no event is lost and none is twice."""
    cfg, whole, uninterrupted = istar
    store = Store(tmp_path / "store")
    (run_id,) = store.create([cfg])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), run_id]
    assert subprocess.run(command, cwd=ROOT, timeout=300, check=False).returncode == -9
    assert checkpoints.newest(store.folder_of(run_id)).name == "step-0000010"
    store.append(run_id, [lost(-9)])
    store.requeue(run_id)
    assert execute(store, run_id).status == "finished"
    events = _stored(store, run_id)
    assert_same(whole, store.folder_of(run_id), uninterrupted, events)
    assert [event.step for event in events if event.kind == "resumed"] == [10]


def _stored(store: Store, run_id: str) -> list[Event]:
    bodies = (body for _, body in store.events(run_id))
    return [
        parse_event({key: value for key, value in body.items() if key != "time"})
        for body in bodies
        if body["kind"] != "lost"
    ]


def damaged(checkpoint: Path, how: str) -> str:
    """Damage one file of a checkpoint; its name."""
    name = {"trainer.json": "trainer.json", "no optimiser": "optimizer.safetensors"}.get(how, "model.safetensors")
    content = bytearray((checkpoint / name).read_bytes())
    if how == "no optimiser":
        (checkpoint / name).unlink()
        return name
    del content[-100:]
    (checkpoint / name).write_bytes(content)
    return name


@pytest.mark.parametrize("how", ["truncated", "no optimiser", "trainer.json"])
def test_damaged_newest_checkpoint_falls_back_to_the_one_before(istar, tmp_path, how):
    cfg, whole, uninterrupted = istar
    parts = tmp_path / "parts"
    first = run(cfg, parts, at_step(11))
    assert sorted(path.name for path in (parts / "checkpoints").iterdir()) == [f"step-{n:07d}" for n in (8, 10, 11)]
    name = damaged(parts / "checkpoints" / "step-0000011", how)
    second = run(cfg, parts, resume=True)
    assert_same(whole, parts, uninterrupted, first, second)
    (resumed,) = (event for event in second if isinstance(event, Resumed))
    assert resumed.step == 10
    assert resumed.warning.startswith("checkpoint step-0000011 is damaged: ") and name in resumed.warning
    assert resumed.warning.endswith("; continued from step 10")


def test_run_whose_checkpoints_are_all_damaged_starts_again(istar, tmp_path):
    cfg, whole, uninterrupted = istar
    parts = tmp_path / "parts"
    run(cfg, parts, at_step(11))
    for checkpoint in ("step-0000010", "step-0000011"):
        damaged(parts / "checkpoints" / checkpoint, "truncated")
    second = run(cfg, parts, resume=True)
    assert_same(whole, parts, uninterrupted, second)
    (resumed,) = (event for event in second if isinstance(event, Resumed))
    assert resumed.step == 0 and resumed.warning.endswith("; started again from the beginning")


def test_disk_that_fills_up_under_a_checkpoint_costs_nothing_but_a_resume(istar, tmp_path):
    """A real limit on the size of files."""
    cfg, whole, uninterrupted = istar
    store = Store(tmp_path / "store")
    (run_id,) = store.create([cfg])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def filled(config, emit, should_stop, run_dir, resume=False):
        steps = []

        def limiting(event):
            emit(event)
            steps.append(event.kind == "stepped")
            if getattr(event, "phase", "") == "saving" and sum(steps) == 4:  # what was reported is written by now
                resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))

        try:
            train(config, limiting, should_stop, run_dir, resume)
        finally:  # the store's own file is larger than that
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    row = execute(store, run_id, train=filled)
    assert row.status == "failed" and row.error is not None
    assert "disk is full" in row.error["advice"] and "then resume" in row.error["advice"]
    folder = store.folder_of(run_id)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-0000002", "step-0000003"]
    store.requeue(run_id)
    assert execute(store, run_id).status == "finished"
    events = [event for event in _stored(store, run_id) if event.kind != "failed"]
    assert_same(whole, folder, uninterrupted, events)
