"""One of several processes that train a run: `accelerate launch … -m isoviz.runs.rank`.

The first writes the run's events to the store. Those on other machines learn the run's configuration from it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from isoviz import errors
from isoviz.config import RunConfig
from isoviz.runs import launch
from isoviz.training import sharding


def main() -> int:
    """Train; returns exit code 1 on failure, which ends the other processes."""
    rank = int(os.environ.get("RANK", "0"))  # a launch of one process does not set it
    order: dict[str, Any] = json.loads(os.environ.pop(launch.ORDER, "{}"))
    if rank == 0 and not order:
        raise SystemExit("isoviz.runs.rank: start the run with `isoviz train` on the first machine")
    try:
        sharding.take_over()
        _train(order, first=rank == 0)
    except BaseException as error:
        traceback.print_exc()
        with suppress(OSError, KeyError):  # another machine, or a full disk
            file = Path(order["run_dir"]) / launch.FAILURE.format(rank)
            file.write_text(json.dumps(errors.to_json(error)), encoding="utf-8")
        return 1
    return 0


def _train(order: dict[str, Any], *, first: bool) -> None:
    from isoviz.runs.emitter import Emitter
    from isoviz.runs.store import Store
    from isoviz.training import processes
    from isoviz.training.loop import train

    processes.begin()
    shared = processes.broadcast((order.get("config"), order.get("run_dir"), order.get("resume")))
    config, run_dir, resume = RunConfig.model_validate_json(shared[0] or ""), Path(shared[1] or ""), bool(shared[2])
    if not first:
        train(config, lambda event: None, lambda: False, run_dir, resume)
        return
    with Emitter(Store(order["store"]), order["run"], order["attempt"]) as emitter:
        train(config, emitter.emit, emitter.should_stop, run_dir, resume)


if __name__ == "__main__":
    sys.exit(main())
