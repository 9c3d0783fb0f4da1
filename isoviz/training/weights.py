"""The saved weights in a run's folder and their epoch, read without torch."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from isoviz.events import Weights

FILE = "model.safetensors"
"""File in a checkpoint's folder: network, method and head."""


def newest(run_dir: Path) -> Path | None:
    """The last complete checkpoint of a run, if any; for a finished run, its saved weights."""
    return max((run_dir / "checkpoints").glob("step-*"), default=None)


def newest_step(run_dir: Path) -> int:
    """The optimiser step of the newest checkpoint; 0 if there is none."""
    folder = newest(run_dir)
    return 0 if folder is None else step_of(folder)


def step_of(checkpoint: Path) -> int:
    """The optimiser step of a checkpoint."""
    return int(checkpoint.name.removeprefix("step-"))


def saved(run_dir: Path) -> Weights | None:
    """The saved weights of a finished run; None if there are none."""
    folder = newest(run_dir)
    epoch = None if folder is None else epoch_of(folder)
    if folder is None or epoch is None or not (folder / FILE).is_file():
        return None
    return Weights(epoch=epoch, step=step_of(folder), path=str(folder.relative_to(run_dir)))


def fingerprint(checkpoint: Path) -> str:
    """Sixteen hex digits of the weights in a checkpoint's folder."""
    file = checkpoint / FILE
    stat = file.stat()
    return _digest(file, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _digest(path: Path, size: int, changed: int) -> str:
    del size, changed  # only part of the cache key
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def epoch_of(checkpoint: Path) -> int | None:
    """The epoch of a checkpoint; None if it cannot be read."""
    try:
        return int(json.loads((checkpoint / "trainer.json").read_text(encoding="utf-8"))["progress"]["epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
