"""One of several processes of a run: `python -m tests.training.two_processes CONFIG.json RUN_DIR EVENTS.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from isoviz.config import RunConfig
from isoviz.training import train

if __name__ == "__main__":
    config = RunConfig.model_validate_json(Path(sys.argv[1]).read_text())
    events: list[object] = []
    train(config, lambda event: events.append(event.model_dump(mode="json")), lambda: False, Path(sys.argv[2]))
    if events:  # the main process
        Path(sys.argv[3]).write_text(json.dumps(events))
