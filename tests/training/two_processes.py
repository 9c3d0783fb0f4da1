"""One of several processes: `python -m tests.training.two_processes FOLDER` trains FOLDER/*/config.json, one after another."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from isoviz.config import RunConfig
from isoviz.training import checkpoints, train


def refuse(*args: object) -> None:
    """Stands where a checkpoint is written or tidied up, in processes that have no business there."""
    raise RuntimeError("only the main process writes checkpoints")


if __name__ == "__main__":
    if os.environ.get("RANK", "0") != "0":
        checkpoints._write = checkpoints.settle = refuse  # type: ignore[assignment]
    for path in sorted(Path(sys.argv[1]).glob("*/config.json")):
        events: list[object] = []
        config = RunConfig.model_validate_json(path.read_text())
        train(config, lambda event: events.append(event.model_dump(mode="json")), lambda: False, path.parent / "run")  # noqa: B023
        if events:  # the main process
            (path.parent / "events.json").write_text(json.dumps(events))
