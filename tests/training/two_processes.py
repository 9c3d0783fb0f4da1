"""One of several processes: `python -m tests.training.two_processes FOLDER` trains FOLDER/*/config.json, one after another.

A file `stop_at` beside a configuration stops that run after the given number of steps and resumes it; a file `fsdp` makes the
processes shard its weights.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from isoviz.config import RunConfig
from isoviz.events import Event
from isoviz.training import checkpoints
from isoviz.training.loop import train


def refuse(*args: object) -> None:
    """Fails in processes that must not write or tidy up checkpoints."""
    raise RuntimeError("only the main process writes checkpoints")


def train_all(folder: Path) -> None:
    """Train FOLDER/*/config.json; the main process writes events.json beside each."""
    for path in sorted(folder.glob("*/config.json")):
        os.environ.pop("ISOVIZ_FSDP", None)
        if (path.parent / "fsdp").exists():
            os.environ["ISOVIZ_FSDP"] = "1"
        events: list[dict[str, object]] = []
        config, run_dir = RunConfig.model_validate_json(path.read_text()), path.parent / "run"

        def emit(event: Event, events: list[dict[str, object]] = events) -> None:
            events.append(event.model_dump(mode="json"))

        if (path.parent / "stop_at").exists():
            last = int((path.parent / "stop_at").read_text())
            train(config, emit, lambda: bool(events) and events[-1].get("step") == last, run_dir)  # noqa: B023
            train(config, emit, lambda: False, run_dir, resume=True)
        else:
            train(config, emit, lambda: False, run_dir)
        if events:  # the main process
            (path.parent / "events.json").write_text(json.dumps(events))


if __name__ == "__main__":
    if os.environ.get("RANK", "0") != "0":
        checkpoints._write = checkpoints.keep_final_weights = refuse  # type: ignore[assignment]
    train_all(Path(sys.argv[1]))
