"""`select=best` keeps what it reports: one model on disk, of the best epoch, through stops and kills; its files and messages."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from isoviz.config import RunConfig
from isoviz.events import Evaluated, Event, Measured
from isoviz.metrics.record import Measurement
from isoviz.training import checkpoints
from isoviz.training.checkpoints import Epoch, Position
from isoviz.training.loop import train
from isoviz.training.reload import reload
from tests import tiny
from tests.training import running
from tests.training.running import at_step, measured, of, run

METHODS: list[tuple[str, dict[str, object]]] = [("isobn", {"beta": 0.5}), ("flow", {})]


class Killed(BaseException):
    """Replaces a kill where a real one would only be slower."""


def config(model: Path, data: Path, method: str = "baseline", params: Any = None, **changes: Any) -> RunConfig:
    values = {"epochs": 5, "learning_rate": 0.06, "schedule": "constant", "select": "best"} | changes
    return running.config(model, data, method, params, kind="regression", **values)


def best_before(epoch: int, cfg: RunConfig, folder: Path) -> tuple[RunConfig, list[Event], Path]:
    """A run whose best epoch comes before that one: the rate ruins the network, and a seed without luck is soon found."""
    for seed in range(8):
        events = run(cfg.model_copy(update={"seed": seed}), folder / str(seed))
        if events[-1].metrics["epoch"] < epoch:
            return cfg.model_copy(update={"seed": seed}), events, folder / str(seed)
    pytest.fail(f"none of eight runs had its best epoch before epoch {epoch}")


def names(run_dir: Path) -> list[str]:
    """Everything below `checkpoints/`, hidden files too."""
    root = run_dir / "checkpoints"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def only_weights(folder: str) -> list[str]:
    """The files of a run at its end."""
    return [f"{folder}/{name}" for name in ("ended.json", "model.safetensors", "trainer.json")]


def model_of(run_dir: Path) -> dict[str, torch.Tensor]:
    (file,) = run_dir.glob("checkpoints/*/model.safetensors")  # one copy and no more
    return load_file(file)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write("regression", tmp_path_factory.mktemp("best") / "data", train=48, validation=24)


def evaluated_again(cfg: RunConfig, run_dir: Path) -> tuple[dict[str, float | None], Any]:
    """Metrics and isotropy of the weights in the run's folder, loaded into a new model and measured like an epoch."""
    folder = checkpoints.newest(run_dir)
    assert folder is not None
    return measured(cfg, *reload(cfg, folder))


@pytest.mark.parametrize(("method", "params"), METHODS)
def test_stored_values_give_the_reported_ones(tiny_models, data, tmp_path, method, params):
    cfg, events, folder = best_before(5, config(tiny_models("bert"), data, method, params), tmp_path)
    finished = events[-1]
    epoch = int(finished.metrics["epoch"])
    step = of(events, "checkpointed")[epoch - 1].step
    assert finished.weights.model_dump() == {"epoch": epoch, "step": step, "path": f"checkpoints/step-{step:07d}"}
    metrics, isotropy = evaluated_again(cfg, folder)
    assert {**metrics, "epoch": epoch} == finished.metrics  # the same bits, so the same numbers
    assert isotropy == finished.isotropy
    assert names(folder) == only_weights(f"step-{step:07d}")


def test_during_training_the_best_checkpoint_moves_only_for_a_better_one(tiny_models, data, tmp_path):
    cfg = config(tiny_models("bert"), data, epochs=6)
    values: list[float] = []
    best_folders: list[str | None] = []
    copies: dict[Path, int] = {}

    def emit(event: Event) -> None:
        if event.kind == "evaluated" and event.epoch:
            values.append(-math.inf if event.metrics["pearson"] is None else event.metrics["pearson"])
        if event.kind == "checkpointed":
            folders = {path.name for path in (tmp_path / "checkpoints").iterdir()}
            last_two = {f"step-{step:07d}" for step in (event.step - 6, event.step) if step}
            best = f"step-{6 * (1 + int(np.argmax(values))):07d}" if values else None
            assert folders == last_two | ({best} if best else set())
            if best and best not in last_two:  # nothing but what the finished run keeps
                assert {path.name for path in (tmp_path / "checkpoints" / best).iterdir()} == {
                    "model.safetensors", "trainer.json",
                }  # fmt: skip
            for file in (tmp_path / "checkpoints").glob("*/model.safetensors"):
                state = file.stat()
                assert copies.setdefault(file, state.st_ino) == state.st_ino  # written once: no copy is made of it
            best_folders.append(best)

    train(cfg, emit, lambda: False, tmp_path)
    assert len(values) == 6 and len(set(best_folders)) > 1


def history(*values: float | None) -> Position:
    entries = [
        Epoch(
            evaluated=Evaluated(step=10 * epoch, epoch=epoch, loss=0.0, metrics={"pearson": value}, primary="pearson"),
            measured=Measured(step=10 * epoch, epoch=epoch, isotropy=Measurement(), arrays=""),
        )
        for epoch, value in enumerate(values)
    ]
    return Position(epoch=len(values) - 1, history=entries)


@pytest.fixture(scope="module")
def best_run(tiny_models, data, tmp_path_factory) -> tuple[RunConfig, list[Event], Path]:
    """A run without interruption, whose best epoch is followed by at least two more."""
    return best_before(4, config(tiny_models("bert"), data, "isobn", {"beta": 0.5}), tmp_path_factory.mktemp("whole"))


def check_the_same(events: list[Event], alone: Path, parts: list[Event], folder: Path) -> None:
    """The numbers, curves, files and weights of the run that was left alone."""
    assert parts[-1].kind == "finished"
    for part in ("metrics", "isotropy", "weights"):
        assert getattr(parts[-1], part) == getattr(events[-1], part)
    losses = {event.step: event.losses for event in of(events, "stepped")}
    assert {event.step: event.losses for event in of(parts, "stepped")}.items() <= losses.items()
    assert names(folder) == names(alone)
    assert same(model_of(folder), model_of(alone))


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [18])
def test_stop_and_resume_end_with_the_same_weights(best_run, tmp_path, stop_at):
    cfg, events, alone = best_run
    first = run(cfg, tmp_path, at_step(stop_at))
    assert first[-1].kind == "stopped" and first[-1].step == stop_at
    again = run(cfg, tmp_path, resume=True)
    assert of(again, "resumed")[0].step == stop_at
    check_the_same(events, alone, again, tmp_path)


@pytest.fixture(scope="module")
def ends(best_run, tmp_path_factory) -> dict[str, Any]:
    """Runs at their end with nothing tidied up: of an earlier epoch's weights, of the last one's as the best, of the last one's."""
    folders = {}
    changes = {"earlier": {}, "last as best": {"epochs": 1}, "last": {"select": "last"}}
    for name, change in changes.items():
        cfg, folder, events = best_run[0].model_copy(update=change), tmp_path_factory.mktemp("ends"), []

        def settle(run_dir: Path, progress: Position, best: int | None, events: list[Any] = events) -> None:
            events.append((progress, best))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoints, "keep_final_weights", settle)
            run(cfg, folder)
        alone = tmp_path_factory.mktemp("alone")
        folders[name] = (cfg, run(cfg, alone), alone, folder, events[0])
    return folders


MOMENTS = {
    "earlier": ["write_text 1", "replace 1", "rename 1", "rmtree 1", "unlink 1", "nothing"],
    "last as best": ["write_text 1", "replace 1", "unlink 1", "unlink 2", "nothing"],
    "last": ["unlink 1", "unlink 2", "nothing"],
}


@pytest.mark.parametrize(
    ("name", "moment"), [(name, moment) for name, moments in MOMENTS.items() for moment in moments]
)
def test_killed_while_the_end_is_tidied_up(ends, tmp_path, monkeypatch, name, moment):
    """Before each change on disk between the last number and the ending, and after all of them."""
    cfg, events, alone, untidy, (progress, best) = ends[name]
    shutil.copytree(untidy, tmp_path / "run")
    action, _, time = moment.partition(" ")
    owner: Any = shutil if action == "rmtree" else Path
    left = [int(time or 0)]

    def counted(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return plain(*args, **options)

    with monkeypatch.context() as patch:
        if action != "nothing":
            plain = getattr(owner, action)
            patch.setattr(owner, action, counted)
        with pytest.raises(Killed):
            checkpoints.keep_final_weights(tmp_path / "run", progress, best)
            assert action == "nothing"
            raise Killed
    again = run(cfg, tmp_path / "run", resume=True)
    assert of(again, "stepped") == []  # all was trained
    check_the_same(events, alone, again, tmp_path / "run")
