"""Executing one run: in this process, for the command line, or in a worker that a runner or a cluster started."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from isoviz.config import RunConfig
from isoviz.devices import VISIBLE
from isoviz.errors import DivergedError, IsoVizError, StoreError, causes, is_out_of_memory
from isoviz.events import Diverged, Event, Failed, Stopped
from isoviz.home import make_private
from isoviz.jobs.worker import ENCODER_MODULES, import_modules, load
from isoviz.models import sources
from isoviz.runs import launch
from isoviz.runs.emitter import Emitter
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.identity import host_name
from isoviz.runs.launch import LOG
from isoviz.runs.store import RunRow, Store

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


Train = Callable[[RunConfig, Callable[[Event], None], Callable[[], bool], Path, bool], None]
"""`isoviz.training.loop.train`: emits events, ends with exactly one `Finished` or `Stopped`, or raises."""


def execute(
    store: Store,
    run_id: str,
    *,
    train: Train | str = DEFAULT_TRAIN,
    tell: Callable[[Event], None] = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    attempt: int | None = None,
    slots: str | None = None,
) -> RunRow:
    """Train a run to its end and write its ending; errors in training are recorded instead of raised.

    Claims a run that is still queued.

    Args:
        store: the run's store.
        run_id: id of a run owned by this process.
        train: training function; as `MODULE:NAME` it is loaded here, so that an error, such as too little memory, fails the run.
        tell: called with each event.
        stop: returns whether this process should stop, in addition to the run's own requests.
        attempt: the attempt for which this process was started; refused if the run is at another attempt or has another process.
        slots: the device slots that it uses, separated by commas. Default: the slot that claimed the run.

    Returns:
        The run after its end. Its status is still `running` if the store could not be written.

    Raises:
        StoreError: the run does not exist or cannot be run.
        KeyboardInterrupt: the user interrupted; the run is `stopped`.
    """
    row = _begin(store, run_id, attempt, slots)
    run_dir = store.folder_of(run_id)
    interrupted: KeyboardInterrupt | None = None
    with Emitter(store, run_id, row.attempt) as emitter:
        try:
            make_private(run_dir)
            if row.visitor is not None:  # this machine may have folders that the one of the app has not
                sources.refuse_folder(row.config.model)
            if train == DEFAULT_TRAIN and launch.is_shared(row.config):
                launch.train(store, row, stop, tell)
            else:
                trainer: Train = load(train) if isinstance(train, str) else train

                def emit(event: Event) -> None:
                    tell(event)
                    emitter.emit(event)

                trainer(row.config, emit, lambda: stop() or emitter.should_stop(), run_dir, row.resume)
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


def _begin(store: Store, run_id: str, attempt: int | None, slots: str | None) -> RunRow:
    row = store.get(run_id)
    if row.status == "queued" and attempt is None:
        claimed = store.claim(row.owner or f"{host_name()}/command", row.device or "local", id=run_id)
        if claimed is None:
            raise StoreError(f"run '{run_id}' was taken by another process")
        row = claimed
    if row.status != "running":
        raise StoreError(f"run '{run_id}' cannot be run: it is {row.status}")
    me = psutil.Process()
    store.set_worker(run_id, me.pid, me.create_time(), attempt, slots)
    return row


def _end(emitter: Emitter, ending: Event) -> None:
    """Write the ending, unless there is one or the store is unavailable; in that case the watching process writes it."""
    if emitter.ending is None:
        with suppress(StoreError):
            emitter.emit(ending)


def prepare() -> None:
    """Import the modules that training needs."""
    import_modules(PRELOADED)


def train_run(
    store: str,
    run: str,
    train: str,
    attempt: int,
    devices: str | None = None,
    slots: str | None = None,
    requeue: bool = False,
) -> int:
    """Train a run, with events in the store and output in the run's log. SIGTERM stops it with a checkpoint.

    Args:
        store: URL.
        run: id.
        train: the training function, as `MODULE:NAME`.
        attempt: see `execute`.
        devices: the GPUs of a run on several, see `isoviz.devices.visible`; None: as in this process.
        slots: the device slots of a run on several, separated by commas.
        requeue: SIGTERM also puts the run back into the queue, because a cluster sends it.

    Returns:
        The exit code: 0 when the run ended in the store, however it ended.
    """
    if devices is not None:  # for the processes of the run; this one uses no GPU
        os.environ[VISIBLE] = devices
    opened = Store(store)

    with gentle_stop(_say) as stop:
        _say(f"worker {os.getpid()} takes run {run}")
        try:
            return int(execute(opened, run, train=train, stop=stop, attempt=attempt, slots=slots).ended is None)
        finally:
            if requeue and stop():
                opened.release(run, attempt)


def _say(line: str) -> None:
    with suppress(OSError):  # the log's disk may be full
        print(line, flush=True)
