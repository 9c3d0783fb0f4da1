"""Checkpoints: everything that a run needs to continue as if uninterrupted. Only safetensors and JSON, no pickle.

In `checkpoints/`, `step-N` is the state after optimiser step N, at an epoch's end or between two steps. During training, the last two
are kept: if the newest cannot be read, a run continues from the previous one. With `select=best`, the
weights of the best epoch are kept too. A finished run keeps one checkpoint: the weights of its reported epoch.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor

from isoviz import devices
from isoviz.errors import InputError
from isoviz.events import Evaluated, Measured
from isoviz.training import processes, sharding
from isoviz.training.weights import FILE, newest

if TYPE_CHECKING:
    from isoviz.config import RunConfig
    from isoviz.training.setup import Setup


_TRAINING_STATE = ("optimizer.safetensors", "generators.safetensors")
_TRAINER = "trainer.json"
_ENDED = "ended.json"
"""In the folder of the final weights: the run's progress at its end. From then on, no other state is needed."""


class Epoch(BaseModel):
    """The report after one epoch."""

    evaluated: Evaluated
    measured: Measured


class Position(BaseModel):
    """The position of a run.

    Attributes:
        step: finished optimiser steps.
        epoch: finished epochs.
        batch: finished batches of the current epoch.
        measured: the last evaluated and measured epoch (-1: none).
        rows: training rows read.
        train_seconds: seconds in training steps.
        evaluate_seconds: seconds for reading and scoring the validation rows, before the first step and after each epoch.
        measure_seconds: additional seconds for measuring isotropy.
        history: the report of each measured epoch.
        fitted: the method's second stage (`Method.fit_frozen`) is finished.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    measured: int = -1
    rows: int = 0
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    measure_seconds: float = 0.0
    history: list[Epoch] = []
    fitted: bool = False

    @property
    def timing(self) -> dict[str, float]:
        """Seconds so far: training, evaluating, measuring."""
        return self.model_dump(include={"train_seconds", "evaluate_seconds", "measure_seconds"})

    def reported(self, config: RunConfig, primary: str) -> Epoch:
        """The epoch that a run reports: the last one, or with `select=best` the one with the highest metric (the earliest in a tie).

        After a second stage (`Method.fit_frozen`) it is always the last one: the stage started from the last epoch.
        """
        if config.select != "best" or self.fitted or len(self.history) == 1:
            return self.history[-1]
        # epoch 0 has an untrained head and is excluded
        return max(self.history[1:], key=lambda entry: _rank(entry.evaluated.metrics.get(primary)))

    def best_step(self, config: RunConfig, primary: str) -> int | None:
        """The optimiser step of the weights that the run would report if it ended now; None for the last state."""
        if config.select != "best" or self.fitted or len(self.history) < 2:
            return None
        return self.reported(config, primary).measured.step

    def is_over(self, config: RunConfig) -> bool:
        """Whether all epochs (and a second stage) are finished, or `early_stopping` applies."""
        if self.epoch >= config.epochs or self.fitted:
            return True
        if config.early_stopping is None:
            return False
        metric, patience = config.early_stopping.rsplit(":", 1)
        values = [_rank(entry.evaluated.metrics.get(metric)) for entry in self.history[1:]]
        return bool(values) and len(values) - 1 - values.index(max(values)) >= int(patience)


def _rank(value: float | None) -> float:
    return -math.inf if value is None or math.isnan(value) else float(value)


def save(setup: Setup, progress: Position, best: int | None = None) -> Path:
    """Write a checkpoint under a temporary name, rename it, then drop older ones. Returns its folder.

    If this step already has a checkpoint (the run was resumed from it, or measured since), only its progress is updated. Every process
    calls this function, to save its random generators; the main process writes.

    Args:
        best: the optimiser step of an older checkpoint whose weights are kept.
    """
    root = setup.run_dir / "checkpoints"
    final = _folder(root, progress.step)
    generators = processes.gather(devices.generator_states())
    shared = sharding.state_of(setup.plain) if sharding.wanted() else None
    state = sharding.optimizer_state(setup.optimizer)
    if setup.accelerator.is_main_process and final.exists():
        trainer = {**_read_json(final / _TRAINER), "progress": progress.model_dump(mode="json")}
        _write_json(final / _TRAINER, trainer)
    elif setup.accelerator.is_main_process:
        before = max(filter(_has_training_state, root.glob("step-*")), default=None)
        _write(final, progress, setup, shared, state, generators)
        for older in root.glob("step-*"):
            if older in (final, before):
                continue
            if best is not None and older == _folder(root, best):
                _drop_training_state(older)
            else:
                shutil.rmtree(older, ignore_errors=True)
    setup.accelerator.wait_for_everyone()
    return final


def _write(
    final: Path,
    progress: Position,
    setup: Setup,
    shared: dict[str, Tensor] | None,
    state: dict[str, Any],
    generators: list[dict[str, Tensor]],
) -> None:
    _remove_partial(final.parent)
    partial = final.with_name(f".partial-{progress.step:07d}")
    partial.mkdir(parents=True)
    scaler = setup.accelerator.scaler
    try:
        if shared is None:
            save_model(setup.plain, str(partial / FILE))
        else:
            save_file(shared, partial / FILE)
        save_file(_flatten(state["state"]), partial / "optimizer.safetensors")
        save_file(_flatten(dict(enumerate(generators))), partial / "generators.safetensors")
        trainer = {
            "version": 1,
            "progress": progress.model_dump(mode="json"),
            "param_groups": state["param_groups"],
            "scheduler": setup.scheduler.state_dict(),
            "scaler": scaler.state_dict() if scaler is not None else None,
        }
        _write_json(partial / _TRAINER, trainer)
        partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # on a full disk the store may need the space to report the error
        raise


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(path)


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def newest_valid(run_dir: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint to continue from, and descriptions of damaged newer ones.

    Damaged checkpoints are moved aside, because the run reaches their steps again.
    """
    damage: list[str] = []
    for folder in sorted((run_dir / "checkpoints").glob("step-*"), reverse=True):
        problem = _damage(folder)
        if problem is None:
            return folder, damage
        damage.append(f"checkpoint {folder.name} is damaged: {problem}")
        _set_aside(folder)
    return None, damage


def _damage(folder: Path) -> str | None:
    """Why a checkpoint cannot be read; None if it can be, as far as the ends of its files tell."""
    ended = (folder / _ENDED).is_file()
    name = _ENDED if ended else _TRAINER
    try:
        _read_json(folder / name)
        for name in (FILE,) if ended else (FILE, *_TRAINING_STATE):
            with safe_open(folder / name, framework="pt"):
                pass
    except FileNotFoundError:
        return f"{name} is missing"
    except (OSError, ValueError, SafetensorError) as error:
        return f"{name} cannot be read ({error})"
    return None


def _set_aside(folder: Path) -> None:
    folder.rename(folder.with_name(f".partial-{folder.name}"))


def _has_training_state(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _TRAINING_STATE)


def _remove_partial(root: Path) -> None:
    for folder in root.glob(".partial-*"):
        shutil.rmtree(folder, ignore_errors=True)


def load(folder: Path, setup: Setup) -> tuple[Position, dict[str, Tensor]]:
    """Restore everything except the random generators, which are returned to be set directly before the first resumed step.

    They are empty if the run had finished and its training state was removed: it can be reported but not trained further.

    Raises `InputError` for another number of processes than before, because the batches would differ.
    """
    if (folder / _ENDED).is_file():
        return Position.model_validate(_read_json(folder / _ENDED)), {}
    trainer = _read_json(folder / _TRAINER)
    progress = Position.model_validate(trainer["progress"])
    generators = _unflatten(load_file(folder / "generators.safetensors"))
    count = setup.accelerator.num_processes
    if len(generators) != count:
        raise InputError(f"resume: the run had {len(generators)} processes, now there are {count}")
    if sharding.wanted():
        sharding.load_state(setup.plain, load_file(folder / FILE))
    else:
        load_model(setup.plain, str(folder / FILE))  # read on the CPU: the reader does not know every kind of device
    state = sharding.split_state(_unflatten(load_file(folder / "optimizer.safetensors")), setup.optimizer)
    setup.optimizer.load_state_dict({"state": state, "param_groups": trainer["param_groups"]})
    setup.scheduler.load_state_dict(trainer["scheduler"])
    scaler = setup.accelerator.scaler
    if scaler is not None and trainer["scaler"] is not None:
        scaler.load_state_dict(trainer["scaler"])
    return progress, generators[setup.accelerator.process_index]


def keep_final_weights(run_dir: Path, progress: Position, best: int | None) -> None:
    """Keep only the final weights of a finished run.

    A kill during or after this function loses nothing: the resumed run reports from the existing files.

    Args:
        progress: the run's complete progress.
        best: the optimiser step of the weights to keep; None for the last.
    """
    keep = newest(run_dir)
    if keep is None:
        return
    root = keep.parent
    if best is not None and (_folder(root, best) / FILE).is_file():  # otherwise someone removed it: the last weights
        keep = _folder(root, best)
    _write_json(keep / _ENDED, progress.model_dump(mode="json"))
    for folder in sorted(root.glob("step-*")):  # the newest one last: until then, a resumed run starts from it
        if folder != keep:
            _set_aside(folder)
    _remove_partial(root)
    _drop_training_state(keep)


def _folder(root: Path, step: int) -> Path:
    return root / f"step-{step:07d}"


def _drop_training_state(folder: Path) -> None:
    for name in _TRAINING_STATE:
        (folder / name).unlink(missing_ok=True)


def _flatten(state: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{index}.{name}": value.contiguous() for index, entry in state.items() for name, value in entry.items()}


def _unflatten(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        # fused and capturable optimisers keep `step` on the parameters' device; the standard one needs it on the CPU
        state.setdefault(int(index), {})[name] = value
    return state
