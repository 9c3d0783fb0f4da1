"""Checkpoints: everything a run needs to go on as if it had not been interrupted. safetensors and JSON only, no pickle.

Below `checkpoints/`, `step-N` is the state after optimiser step N, at an epoch's end or between two steps. While a run trains
there is the last one; with `select=best` the best epoch's lies beside it once there is a later one, reduced to its weights. A
finished run has one: the weights it reports.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import BaseModel
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from isoviz.errors import InputError
from isoviz.events import Evaluated, Measured
from isoviz.training.weights import FILE, newest

if TYPE_CHECKING:
    from isoviz.training.processes import Processes


_TRAINING_STATE = ("optimizer.safetensors", "generators.safetensors")
_TRAINER = "trainer.json"
_ENDED = "ended.json"
"""In the folder of the best epoch's weights: the run's progress at its end. From then on the last state can be let go."""


class Epoch(BaseModel):
    """What was reported after one epoch."""

    evaluated: Evaluated
    measured: Measured


@dataclass
class Progress:
    """Where a run is.

    Attributes:
        step: optimiser steps done.
        epoch: epochs done.
        batch: batches of the current epoch done.
        measured: the last epoch that was evaluated and measured (-1: none).
        rows: training rows seen.
        train_seconds: seconds spent in training steps.
        evaluate_seconds: in reading and scoring the validation rows, before the first step and after each epoch.
        measure_seconds: in what isotropy takes beyond that.
        history: per measured epoch, what was reported.
        fitted: the method's second stage (`Method.fit_frozen`) is done.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    measured: int = -1
    rows: int = 0
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    measure_seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    fitted: bool = False

    @property
    def timing(self) -> dict[str, float]:
        """Seconds so far: training, evaluating, measuring."""
        names = ("train_seconds", "evaluate_seconds", "measure_seconds")
        return {name: getattr(self, name) for name in names}

    def as_json(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {**vars(self), "history": [epoch.model_dump(mode="json") for epoch in self.history]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Progress:
        """From a checkpoint, also of an older version."""
        return cls(**{**data, "history": [Epoch.model_validate(epoch) for epoch in data["history"]]})


def save(
    run_dir: Path,
    progress: Progress,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    processes: Processes,
    best: int | None = None,
) -> Path:
    """Write a checkpoint under a temporary name, rename it, then drop older ones. Returns its folder.

    Where this step has one already (the run was resumed from it, or measured since), only its progress is brought up to date.
    Every process calls it, for its random generators; the main one writes.

    Args:
        best: the optimiser step of an older checkpoint whose weights stay.
    """
    root = run_dir / "checkpoints"
    final = _folder(root, progress.step)
    generators = processes.gather(generator_states())
    if processes.is_main and final.exists():
        _update_progress(final, progress)
    elif processes.is_main:
        _write(root, final, progress, model, optimizer, scheduler, processes, generators)
        for older in root.glob("step-*"):
            if best is not None and older == _folder(root, best):
                _drop_training_state(older)
            elif older != final:
                shutil.rmtree(older, ignore_errors=True)
    processes.wait()
    return final


def _write(
    root: Path,
    final: Path,
    progress: Progress,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    processes: Processes,
    generators: list[dict[str, Tensor]],
) -> None:
    _remove_partial(root)
    partial = root / f".partial-{progress.step:07d}"
    partial.mkdir(parents=True)
    save_model(model, str(partial / FILE))
    state = optimizer.state_dict()
    save_file(_flatten(state["state"]), partial / "optimizer.safetensors")
    save_file(_flatten(dict(enumerate(generators))), partial / "generators.safetensors")
    scaler = processes.accelerator.scaler
    trainer = {
        "version": 1,
        "progress": progress.as_json(),
        "param_groups": state["param_groups"],
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict() if scaler is not None else None,
    }
    (partial / _TRAINER).write_text(json.dumps(trainer), encoding="utf-8")
    partial.rename(final)


def _update_progress(folder: Path, progress: Progress) -> None:
    trainer = json.loads((folder / _TRAINER).read_text(encoding="utf-8"))
    partial = folder / f".{_TRAINER}.partial"
    partial.write_text(json.dumps({**trainer, "progress": progress.as_json()}), encoding="utf-8")
    partial.replace(folder / _TRAINER)


def _remove_partial(root: Path) -> None:
    """What a killed process was writing."""
    for folder in root.glob(".partial-*"):
        shutil.rmtree(folder, ignore_errors=True)


def load(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Any, processes: Processes
) -> tuple[Progress, dict[str, Tensor]]:
    """Restore everything but the random generators, which are returned: set them right before the first resumed step.

    They are empty where the run was at its end and its training state is gone: it can be reported, not trained further.

    InputError for another number of processes than the run had: its batches would be other ones.
    """
    accelerator = processes.accelerator
    # of several processes on the CPU each has a "cpu:0", which safetensors does not know
    device = "cpu" if accelerator.device.type == "cpu" else str(accelerator.device)
    if (folder / _ENDED).is_file():
        return Progress.from_json(json.loads((folder / _ENDED).read_text(encoding="utf-8"))), {}
    trainer = json.loads((folder / _TRAINER).read_text(encoding="utf-8"))
    if not all((folder / name).is_file() for name in _TRAINING_STATE):
        load_model(model, str(folder / FILE), device=device)
        return Progress.from_json(trainer["progress"]), {}
    generators = _unflatten(load_file(folder / "generators.safetensors"))
    if len(generators) != processes.count:
        raise InputError(f"resume: the run had {len(generators)} processes, now there are {processes.count}")
    load_model(model, str(folder / FILE), device=device)
    state = _unflatten(load_file(folder / "optimizer.safetensors", device=device))
    optimizer.load_state_dict({"state": state, "param_groups": trainer["param_groups"]})
    scheduler.load_state_dict(trainer["scheduler"])
    if accelerator.scaler is not None and trainer["scaler"] is not None:
        accelerator.scaler.load_state_dict(trainer["scaler"])
    return Progress.from_json(trainer["progress"]), generators[processes.rank]


def settle(run_dir: Path, progress: Progress, best: int | None) -> None:
    """Of a run at its end keep one model, without training state.

    A kill in here, or after it, loses nothing: the run, resumed, reports from what is there.

    Args:
        progress: the run's, complete.
        best: the optimiser step of the weights to keep; None for the last. A run that began before its best epoch's weights
            stayed has only the last.
    """
    keep = newest(run_dir)
    if keep is None:
        return
    root = keep.parent
    if best is not None and (_folder(root, best) / FILE).is_file():
        keep = _folder(root, best)
        partial = keep / f".{_ENDED}.partial"
        partial.write_text(json.dumps(progress.as_json()), encoding="utf-8")
        partial.replace(keep / _ENDED)
    for other in sorted(root.glob("step-*")):  # the last one last: until then it is what a resumed run begins with
        if other != keep:
            other.rename(root / f".partial-{other.name}")
    _remove_partial(root)
    _drop_training_state(keep)


def _folder(root: Path, step: int) -> Path:
    return root / f"step-{step:07d}"


def _drop_training_state(folder: Path) -> None:
    for name in _TRAINING_STATE:
        (folder / name).unlink(missing_ok=True)


def set_generators(states: dict[str, Tensor]) -> None:
    """Put the random generators (dropout's) back where they were; InputError if there are none (see `load`)."""
    if not states:
        raise InputError(
            "resume: of this run's last state only the weights are left",
            advice="It cannot be trained further; start it again.",
        )
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def generator_states() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _flatten(state: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{index}.{name}": value.contiguous() for index, entry in state.items() for name, value in entry.items()}


def _unflatten(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        # fused and capturable optimisers keep `step` where the parameters are; the plain one wants it on the CPU
        state.setdefault(int(index), {})[name] = value
    return state
