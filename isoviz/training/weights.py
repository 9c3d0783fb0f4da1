"""The weights that lie in a run's folder, and after which epoch: read without torch."""

from __future__ import annotations

import json
from pathlib import Path

from isoviz.events import Weights

FILE = "model.safetensors"
"""Below a checkpoint's folder: network, method and head."""


def newest(run_dir: Path) -> Path | None:
    """The last complete checkpoint of a run, if there is one; of a finished run the weights that it keeps."""
    found = sorted((run_dir / "checkpoints").glob("step-*"))
    return found[-1] if found else None


def kept(run_dir: Path) -> Weights | None:
    """What a finished run keeps; None if it is not there."""
    folder = newest(run_dir)
    epoch = None if folder is None else epoch_of(folder)
    if folder is None or epoch is None or not (folder / FILE).is_file():
        return None
    return Weights(epoch=epoch, step=int(folder.name.removeprefix("step-")), path=str(folder.relative_to(run_dir)))


def epoch_of(checkpoint: Path) -> int | None:
    """How many epochs its weights have seen; None if that cannot be read."""
    try:
        return int(json.loads((checkpoint / "trainer.json").read_text(encoding="utf-8"))["progress"]["epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
