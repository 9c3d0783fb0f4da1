"""What the process of one run does: prepare itself, then train the run that it is ordered to (`isoviz.jobs.worker`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from isoviz import fence, limits
from isoviz.config import RunConfig
from isoviz.events import Event
from isoviz.jobs.kinds import QUEUED, Kind
from isoviz.jobs.worker import ENCODER_MODULES, import_modules, load
from isoviz.runs.execution import execute
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.store import Store

DEFAULT_TRAIN: Final = "isoviz.training:train"
RUN: Final = Kind(name="run", priority=QUEUED, prepare=f"{__name__}:prepare")
"""Its queue is the store, and a device slot has one at a time."""
CALL: Final = f"{__name__}:train_run"
# What a run of the most common kind imports besides.
PRELOADED: Final = (
    *ENCODER_MODULES,
    "transformers.optimization",
    "accelerate",
    "sklearn.metrics",
    "isoviz.training.loop",
)


def prepare() -> None:
    """What a spare does: import what training needs."""
    import_modules(PRELOADED, gently=True)


def train_run(
    store: str,
    run: str,
    train: str,
    roots: dict[str, Any] | None = None,
    devices: str | None = None,
    attempt: int | None = None,
) -> int:
    """Train a run. What it has to say goes to the store and to the run's log. SIGTERM asks it to stop with a checkpoint.

    Args:
        store: URL.
        run: id.
        train: what trains, as `MODULE:NAME`.
        roots: where the visitor who launched it may read (`isoviz.fence.Roots`); None: anywhere.
        devices: CUDA_VISIBLE_DEVICES of a run over several; None: that of this process.
        attempt: of a process that a cluster started: see `execute`. SIGTERM then puts the run back into the queue.

    Returns:
        The exit code: 0 when the run ended in the store, however it ended.
    """
    if devices is not None:  # this process, which starts those of the run, touches none itself
        os.environ["CUDA_VISIBLE_DEVICES"] = devices
    opened = Store(store)

    def trainer(
        config: RunConfig,
        emit: Callable[[Event], None],
        should_stop: Callable[[], bool],
        run_dir: Path,
        resume: bool = False,
    ) -> None:
        # Loaded here, where its failure is the run's: the imports take memory.
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
