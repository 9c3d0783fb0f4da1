"""The process of one run: its preparation, and the training that it is ordered to do (`isoviz.jobs.worker`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from isoviz import fence, limits
from isoviz.config import RunConfig
from isoviz.devices import VISIBLE
from isoviz.events import Event
from isoviz.jobs.kinds import QUEUED, Kind
from isoviz.jobs.worker import ENCODER_MODULES, import_modules, load
from isoviz.runs.execution import execute
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.store import Store

DEFAULT_TRAIN: Final = "isoviz.training:train"
RUN: Final = Kind(name="run", priority=QUEUED, prepare=f"{__name__}:prepare")
"""Runs are queued in the store; each device slot trains one at a time."""
CALL: Final = f"{__name__}:train_run"
# Imports of the most common kind of run.
PRELOADED: Final = (
    *ENCODER_MODULES,
    "accelerate",
    "isoviz.training.loop",
)


def prepare() -> None:
    """Import the modules that training needs."""
    import_modules(PRELOADED, gently=True)


def train_run(
    store: str,
    run: str,
    train: str,
    roots: dict[str, Any] | None = None,
    devices: str | None = None,
    attempt: int | None = None,
) -> int:
    """Train a run, with events in the store and output in the run's log. SIGTERM stops it with a checkpoint.

    Args:
        store: URL.
        run: id.
        train: the training function, as `MODULE:NAME`.
        roots: folders that the run may read (`isoviz.fence.Roots`), because a visitor launched it; None: any.
        devices: the GPUs of a run on several, see `isoviz.devices.visible`; None: as in this process.
        attempt: of a process that a cluster started: see `execute`. SIGTERM then puts the run back into the queue.

    Returns:
        The exit code: 0 when the run ended in the store, however it ended.
    """
    if devices is not None:  # for the processes of the run; this one uses no GPU
        os.environ[VISIBLE] = devices
    opened = Store(store)

    def trainer(
        config: RunConfig,
        emit: Callable[[Event], None],
        should_stop: Callable[[], bool],
        run_dir: Path,
        resume: bool = False,
    ) -> None:
        # Loaded here, so that an error, such as too little memory, fails the run.
        load(train)(config, emit, should_stop, run_dir, resume)

    with gentle_stop(_say) as stop, limits.confined(fence.roots_of(roots)):
        _say(f"worker {os.getpid()} takes run {run}")
        try:
            return 0 if execute(opened, run, train=trainer, stop=stop, attempt=attempt).ended is not None else 1
        finally:
            if attempt is not None and stop():
                opened.give_back(run, attempt)


def _say(line: str) -> None:
    with suppress(OSError):  # the log's disk may be full
        print(line, flush=True)
