"""Checkpoints: everything a run needs to go on as if it had not been interrupted. safetensors and JSON only, no pickle."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from isoviz.errors import InputError

if TYPE_CHECKING:
    from isoviz.training.processes import Processes


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
        history: per measured epoch, what was reported.
        fitted: the method's second stage (`Method.fit_frozen`) is done.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    measured: int = -1
    rows: int = 0
    train_seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    fitted: bool = False


def newest(run_dir: Path) -> Path | None:
    """The last complete checkpoint of a run, if there is one."""
    found = sorted((run_dir / "checkpoints").glob("step-*"))
    return found[-1] if found else None


def save(
    run_dir: Path,
    progress: Progress,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    processes: Processes,
) -> Path:
    """Write a checkpoint under a temporary name, rename it, then drop older ones. Returns its folder.

    Every process calls it, for its random generators; the main one writes.
    """
    root = run_dir / "checkpoints"
    final = root / f"step-{progress.step:07d}"
    generators = processes.gather(generator_states())
    if processes.is_main:
        _write(root, final, progress, model, optimizer, scheduler, processes, generators)
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
    if final.exists():
        return  # the same step again after a resume: the same numbers
    partial = root / f".partial-{progress.step:07d}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_model(model, str(partial / "model.safetensors"))
    state = optimizer.state_dict()
    save_file(_flatten(state["state"]), partial / "optimizer.safetensors")
    save_file(_flatten(dict(enumerate(generators))), partial / "generators.safetensors")
    scaler = processes.accelerator.scaler
    trainer = {
        "version": 1,
        "progress": asdict(progress),
        "param_groups": state["param_groups"],
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict() if scaler is not None else None,
    }
    (partial / "trainer.json").write_text(json.dumps(trainer), encoding="utf-8")
    partial.rename(final)
    for older in root.glob("step-*"):
        if older != final:
            shutil.rmtree(older, ignore_errors=True)


def load(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Any, processes: Processes
) -> tuple[Progress, dict[str, Tensor]]:
    """Restore everything but the random generators, which are returned: set them right before the first resumed step.

    InputError for another number of processes than the run had: its batches would be other ones.
    """
    accelerator = processes.accelerator
    generators = _unflatten(load_file(folder / "generators.safetensors"))
    if len(generators) != processes.count:
        raise InputError(f"resume: the run had {len(generators)} processes, now there are {processes.count}")
    load_model(model, str(folder / "model.safetensors"), device=str(accelerator.device))
    trainer = json.loads((folder / "trainer.json").read_text(encoding="utf-8"))
    state = _unflatten(load_file(folder / "optimizer.safetensors", device=str(accelerator.device)))
    optimizer.load_state_dict({"state": state, "param_groups": trainer["param_groups"]})
    scheduler.load_state_dict(trainer["scheduler"])
    if accelerator.scaler is not None and trainer["scaler"] is not None:
        accelerator.scaler.load_state_dict(trainer["scaler"])
    return Progress(**trainer["progress"]), generators[processes.rank]


def drop_training_state(run_dir: Path) -> None:
    """After a finished run only the weights are kept."""
    folder = newest(run_dir)
    if folder is not None:
        for name in ("optimizer.safetensors", "generators.safetensors"):
            (folder / name).unlink(missing_ok=True)


def set_generators(states: dict[str, Tensor]) -> None:
    """Put the random generators (dropout's) back where they were."""
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
