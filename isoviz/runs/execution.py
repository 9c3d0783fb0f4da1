"""Executing one run: in this process, for the command line, or in a worker that a runner or a cluster started."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import psutil

from isoviz.config import RunConfig
from isoviz.devices import VISIBLE
from isoviz.errors import DivergedError, IsoVizError, StoreError, causes, is_out_of_memory
from isoviz.events import Diverged, Event, Failed, Stopped
from isoviz.home import make_private
from isoviz.jobs.worker import ENCODER_MODULES, import_modules, load
from isoviz.models import sources
from isoviz.runs.emitter import Emitter
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.identity import host_name
from isoviz.runs.store import RunRow, Store
from isoviz.training.distributed import LOG

DEFAULT_TRAIN: Final = "isoviz.training.loop:train"
PREPARE: Final = f"{__name__}:prepare"
CALL: Final = f"{__name__}:train_run"
# Imports of the most common kind of run.
PRELOADED: Final = (*ENCODER_MODULES, "accelerate", "isoviz.training.loop")
_SEE_LOG: Final = "The traceback is in the run's log."
_MEMORY: Final = (
    "Out of memory: halve the batch size and double the accumulation (the same effective batch), "
    "shorten the longest input, or choose a smaller model."
)
_DISK: Final = "The disk is full: delete runs you no longer need, then resume."


class Train(Protocol):
    """`isoviz.training.loop.train`: emits events, ends with exactly one `Finished` or `Stopped`, or raises."""

    def __call__(
        self,
        config: RunConfig,
        emit: Callable[[Event], None],
        should_stop: Callable[[], bool],
        run_dir: Path,
        resume: bool = False,
    ) -> None: ...


def execute(
    store: Store,
    run_id: str,
    *,
    train: Train | str = DEFAULT_TRAIN,
    stop: Callable[[], bool] = lambda: False,
    patience: float = 60.0,
    attempt: int | None = None,
) -> RunRow:
    """Train a run to its end and write its ending; errors in training are recorded instead of raised.

    Claims a run that is still queued.

    Args:
        store: the run's store.
        run_id: id of a run owned by this process.
        train: training function; as `MODULE:NAME` it is loaded here, so that an error, such as too little memory, fails the run.
        stop: returns whether this process should stop, in addition to the run's own requests.
        patience: see `Emitter`.
        attempt: the attempt for which this process was started; refused if the run is at another attempt or has a process.

    Returns:
        The run after its end. Its status is still `running` if the store could not be written.

    Raises:
        StoreError: the run does not exist or cannot be run.
        KeyboardInterrupt: the user interrupted; the run is `stopped`.
    """
    row = _begin(store, run_id, attempt)
    run_dir = store.folder_of(run_id)
    interrupted: KeyboardInterrupt | None = None
    with Emitter(store, run_id, row.attempt, patience=patience) as emitter:
        try:
            make_private(run_dir)
            if row.visitor is not None:  # this machine may have folders that the one of the app has not
                sources.refuse_folder(row.config.model)
            trainer: Train = load(train) if isinstance(train, str) else train
            trainer(row.config, emitter.emit, lambda: stop() or emitter.should_stop(), run_dir, row.resume)
            if emitter.ending is None:
                raise RuntimeError("the training returned without an ending")
        except KeyboardInterrupt as error:
            interrupted = error
            _end(emitter, Stopped(step=emitter.checkpoint_step, forced=True))
        except BaseException as error:  # including SystemExit: every ending is reported
            with suppress(OSError), (run_dir / LOG).open("a", encoding="utf-8") as log:
                traceback.print_exc(file=log)
            _end(emitter, explain(error))
    if interrupted is not None:
        raise interrupted
    return store.get(run_id)


def explain(error: BaseException) -> Failed | Diverged:
    """The ending for an exception, with advice."""
    message = str(error).strip() or "no message"
    if isinstance(error, DivergedError):
        return Diverged(term=error.term, step=error.step, message=message, advice=error.advice or _SEE_LOG)
    advice = _MEMORY if is_out_of_memory(error) else _DISK if _is_full_disk(error) else _SEE_LOG
    name = type(error).__name__
    if isinstance(error, IsoVizError):
        return Failed(error=name, message=message, advice=error.advice or advice)
    # The first line is enough; torch adds pages of shapes and hints, which are in the log.
    return Failed(error=name, message=message.splitlines()[0][:500], advice=advice)


def _is_full_disk(error: BaseException) -> bool:
    # safetensors raises its own error with the system's error number as text
    numbers = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return any(
        cause.errno in numbers
        if isinstance(cause, OSError)
        else any(f"(os error {number})" in str(cause) for number in numbers)
        for cause in causes(error)
    )


def _begin(store: Store, run_id: str, attempt: int | None) -> RunRow:
    row = store.get(run_id)
    if row.status == "queued" and attempt is None:
        claimed = store.claim(row.owner or f"{host_name()}/command", row.device or "local", id=run_id)
        if claimed is None:
            raise StoreError(f"run '{run_id}' was taken by another process")
        row = claimed
    if row.status != "running":
        raise StoreError(f"run '{run_id}' cannot be run: it is {row.status}")
    me = psutil.Process()
    store.set_worker(run_id, me.pid, me.create_time(), attempt)
    return row


def _end(emitter: Emitter, ending: Event) -> None:
    """Write the ending, unless there is one or the store is unavailable; in that case the watching process writes it."""
    if emitter.ending is None:
        with suppress(StoreError):
            emitter.emit(ending)


def prepare() -> None:
    """Import the modules that training needs."""
    import_modules(PRELOADED, gently=True)


def train_run(store: str, run: str, train: str, devices: str | None = None, attempt: int | None = None) -> int:
    """Train a run, with events in the store and output in the run's log. SIGTERM stops it with a checkpoint.

    Args:
        store: URL.
        run: id.
        train: the training function, as `MODULE:NAME`.
        devices: the GPUs of a run on several, see `isoviz.devices.visible`; None: as in this process.
        attempt: of a process that a cluster started: see `execute`. SIGTERM then puts the run back into the queue.

    Returns:
        The exit code: 0 when the run ended in the store, however it ended.
    """
    if devices is not None:  # for the processes of the run; this one uses no GPU
        os.environ[VISIBLE] = devices
    opened = Store(store)

    with gentle_stop(_say) as stop:
        _say(f"worker {os.getpid()} takes run {run}")
        try:
            return 0 if execute(opened, run, train=train, stop=stop, attempt=attempt).ended is not None else 1
        finally:
            if attempt is not None and stop():
                opened.release(run, attempt)


def _say(line: str) -> None:
    with suppress(OSError):  # the log's disk may be full
        print(line, flush=True)
