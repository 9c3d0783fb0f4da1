"""A run's folder, read without torch: the model and rows that it started from, and the weights that it saved."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.errors import DataError, ModelError
from isoviz.events import Weights

if TYPE_CHECKING:
    from isoviz.models.sources import ModelSource

FILE = "model.safetensors"
"""File in a checkpoint's folder: network, method and head."""
_PROVENANCE = "origin.json"


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


@dataclass(frozen=True)
class Provenance:
    """Model and data of the run's first attempt that reached its first step.

    Attributes:
        model: fingerprint of the model's files.
        revision: the model's commit, if it came from the hub.
        data: fingerprint of the rows.
        generation: how it writes texts, which the training rows decide (`Head.generation`); empty if it writes none.
    """

    model: str
    revision: str | None
    data: str
    generation: dict[str, int | None] = field(default_factory=dict)

    def check(self, source: ModelSource, data: str) -> None:
        """Check that model and data have not changed.

        Raises:
            ModelError, DataError: they have changed.
        """
        for what, kind, now, before in (
            ("model", ModelError, source.fingerprint, self.model),
            ("data", DataError, data, self.data),
        ):
            if now != before:
                subject = f"the files of '{source.name}'" if what == "model" else "the rows"
                raise kind.at(
                    what,
                    f"{subject} have changed since this run began (fingerprint {now}, the run's was {before})",
                    f"Restore the original, or start a new run: a run cannot change its {what} halfway.",
                )


def save_provenance(run_dir: Path, provenance: Provenance) -> None:
    """Write it atomically, so that a resumed run can detect changes."""
    run_dir.mkdir(parents=True, exist_ok=True)
    partial = run_dir / f".{_PROVENANCE}.partial"
    partial.write_text(json.dumps(asdict(provenance)), encoding="utf-8")
    partial.replace(run_dir / _PROVENANCE)


def find_provenance(run_dir: Path) -> Provenance | None:
    """What a run started from; None if the run did not reach its first step, or is older than this record."""
    try:
        return Provenance(**json.loads((run_dir / _PROVENANCE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
