"""A job's progress, in a file that other processes can read at any time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = "progress.json"
EVERY: Final = 0.5
"""Fewest seconds between two writes."""


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of roughly equal duration; `text`: the current activity."""

    done: int = 0
    total: int = 1
    text: str = "starting"

    @property
    def fraction(self) -> float:
        """Within [0, 1]."""
        return min(1.0, max(0.0, self.done / self.total)) if self.total > 0 else 0.0


class ProgressFile:
    """Writes progress at most twice a second; progress never decreases.

    Args:
        folder: folder of the job.
        clock: seconds; for tests.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = folder / FILE
        self._clock = clock
        self._written: float | None = None
        self._furthest = 0.0

    def __call__(self, done: int, total: int, text: str) -> None:
        """Report that `done` of `total` steps are finished."""
        now = self._clock()
        if self._written is not None and now - self._written < EVERY:
            return
        self._furthest = max(self._furthest, done / total if total > 0 else 0.0)
        write_json(self._path, {"done": round(self._furthest * total), "total": total, "text": text})
        self._written = now


def read(folder: Path) -> Progress:
    """The progress of the job in a folder; zero if it has not reported any."""
    reported = read_json(folder / FILE)
    if reported is None:
        return Progress()
    return Progress(int(reported["done"]), int(reported["total"]), str(reported["text"]))


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if the file does not exist."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return content
