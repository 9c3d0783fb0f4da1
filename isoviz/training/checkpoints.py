"""Checkpoints: everything that a run needs to continue as if uninterrupted. Only safetensors and JSON, no pickle.

In `checkpoints/`, `step-N` is the state after optimiser step N, at an epoch's end or between two steps. During training, the last two
are kept with checksums of their files: if the newest is damaged, a run continues from the previous one. With `select=best`, the
weights of the best epoch are kept too. A finished run keeps one checkpoint: the weights of its reported epoch.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from isoviz import devices
from isoviz.errors import InputError
from isoviz.events import Evaluated, Measured
from isoviz.training import processes, sharding
from isoviz.training.weights import FILE, newest

if TYPE_CHECKING:
    from isoviz.training.setup import Setup


_TRAINING_STATE = ("optimizer.safetensors", "generators.safetensors")
_TRAINER = "trainer.json"
_ENDED = "ended.json"
"""In the folder of the final weights: the run's progress at its end. From then on, no other state is needed."""
_DIGEST = "digest"


class Epoch(BaseModel):
    """The report after one epoch."""

    evaluated: Evaluated
    measured: Measured


class Progress(BaseModel):
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


def save(setup: Setup, progress: Progress, best: int | None = None) -> Path:
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
        trainer = {**_read_sealed(final / _TRAINER), "progress": progress.model_dump(mode="json")}
        _write_sealed(final / _TRAINER, trainer)
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
    progress: Progress,
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
            "checksums": {name: _checksum(partial / name) for name in (FILE, *_TRAINING_STATE)},
        }
        _write_sealed(partial / _TRAINER, trainer)
        partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # on a full disk the store may need the space to report the error
        raise


def _write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON with a checksum, atomically."""
    json_content = json.loads(json.dumps(content))
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps({**json_content, _DIGEST: _digest(json_content)}), encoding="utf-8")
    partial.replace(path)


def _read_sealed(path: Path) -> dict[str, Any]:
    """Read a file of `_write_sealed`. Raises `ValueError` if it has changed."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if content.pop(_DIGEST, None) != _digest(content):
        raise ValueError(f"{path.name} does not match its checksum")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def newest_valid(run_dir: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint to continue from, and descriptions of damaged newer ones.

    Damaged checkpoints are moved aside, because the run reaches their steps again.
    """
    damage: list[str] = []
    for folder in sorted((run_dir / "checkpoints").glob("step-*"), reverse=True):
        problem = _damage(folder)
        if problem is None and damage and not (_has_training_state(folder) or (folder / _ENDED).is_file()):
            problem = "only its weights are left"  # the best epoch's weights, which the run reaches again
        elif problem is None:
            return folder, damage
        else:
            damage.append(f"checkpoint {folder.name} is damaged: {problem}")
        _set_aside(folder)
    return None, damage


def _damage(folder: Path) -> str | None:
    """The problem with a checkpoint's files; None if they are intact."""
    try:
        sealed = {name: _read_sealed(folder / name) for name in (_TRAINER, _ENDED) if (folder / name).is_file()}
    except (OSError, ValueError) as error:
        return f"{_TRAINER} cannot be read ({error})"
    if _TRAINER not in sealed:
        return f"{_TRAINER} is missing"
    if not (folder / FILE).is_file():
        return f"{FILE} is missing"
    for name, expected in sealed[_TRAINER]["checksums"].items():
        try:
            if _checksum(folder / name) != expected:
                return f"{name} does not match its checksum"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


def _set_aside(folder: Path) -> None:
    folder.rename(folder.with_name(f".partial-{folder.name}"))


def _has_training_state(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _TRAINING_STATE)


def _remove_partial(root: Path) -> None:
    """Delete incomplete files of a killed process."""
    for folder in root.glob(".partial-*"):
        shutil.rmtree(folder, ignore_errors=True)


def load(folder: Path, setup: Setup) -> tuple[Progress, dict[str, Tensor]]:
    """Restore everything except the random generators, which are returned to be set directly before the first resumed step.

    They are empty if the run had finished and its training state was removed: it can be reported but not trained further.

    Raises `InputError` for another number of processes than before, because the batches would differ.
    """
    if (folder / _ENDED).is_file():
        return Progress.model_validate(_read_sealed(folder / _ENDED)), {}
    trainer = _read_sealed(folder / _TRAINER)
    progress = Progress.model_validate(trainer["progress"])
    if not _has_training_state(folder):
        _load_weights(setup.plain, folder / FILE)
        return progress, {}
    generators = _unflatten(load_file(folder / "generators.safetensors"))
    count = setup.accelerator.num_processes
    if len(generators) != count:
        raise InputError(f"resume: the run had {len(generators)} processes, now there are {count}")
    _load_weights(setup.plain, folder / FILE)
    state = sharding.split_state(_unflatten(load_file(folder / "optimizer.safetensors")), setup.optimizer)
    setup.optimizer.load_state_dict({"state": state, "param_groups": trainer["param_groups"]})
    setup.scheduler.load_state_dict(trainer["scheduler"])
    scaler = setup.accelerator.scaler
    if scaler is not None and trainer["scaler"] is not None:
        scaler.load_state_dict(trainer["scaler"])
    return progress, generators[setup.accelerator.process_index]


def _load_weights(model: nn.Module, file: Path) -> None:
    if sharding.wanted():
        sharding.load_state(model, load_file(file))
    else:
        load_model(model, str(file))  # read on the CPU: the reader does not know every kind of device


def keep_final_weights(run_dir: Path, progress: Progress, best: int | None) -> None:
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
    _write_sealed(keep / _ENDED, progress.model_dump(mode="json"))
    for folder in sorted(root.glob("step-*")):  # the newest one last: until then, a resumed run starts from it
        if folder != keep:
            _set_aside(folder)
    _remove_partial(root)
    _drop_training_state(keep)


def _folder(root: Path, step: int) -> Path:
    return root / f"step-{step:07d}"


def _drop_training_state(folder: Path) -> None:
    with suppress(OSError, ValueError):  # first the list, then the files, so that listed files always exist
        trainer = _read_sealed(folder / _TRAINER)
        checksums = {name: sum for name, sum in trainer["checksums"].items() if name not in _TRAINING_STATE}
        if checksums != trainer["checksums"]:
            _write_sealed(folder / _TRAINER, {**trainer, "checksums": checksums})
    for name in _TRAINING_STATE:
        (folder / name).unlink(missing_ok=True)


def set_generators(states: dict[str, Tensor]) -> None:
    """Restore the random generators (for dropout). Raises `InputError` if there are none (see `load`)."""
    if not states:
        raise InputError(
            "resume: only the final weights of this run are left",
            advice="It cannot be resumed; start it again.",
        )
    devices.set_generator_states(states)


def _flatten(state: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{index}.{name}": value.contiguous() for index, entry in state.items() for name, value in entry.items()}


def _unflatten(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        # fused and capturable optimisers keep `step` on the parameters' device; the standard one needs it on the CPU
        state.setdefault(int(index), {})[name] = value
    return state
