"""The connection between a training loop and the store: sends events in small batches and heartbeats, receives stop requests."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from isoviz.errors import StoreError
from isoviz.events import ENDINGS, Event
from isoviz.runs.database import StoreUnavailableError
from isoviz.runs.store import Store

TICK_SECONDS: Final = 0.2
HEARTBEAT_SECONDS: Final = 1.0


class Emitter:
    """Writes the events of one attempt of one run in a separate thread, so that training never waits for a disk.

    Steps are batched for at most `TICK_SECONDS`; other events are rarer and written immediately. Before a checkpoint (`Entered` with
    phase `saving`), `emit` waits until everything is written, because a run that resumes from the checkpoint does not report it again.
    While the database is unavailable (disk full, server down), events are kept and retried for `patience` seconds. After that, or if
    another process has taken over the run, `emit` raises the error, which ends the training. As a context manager, it waits on exit
    until everything is written or given up.


    Args:
        store: the store.
        run_id, attempt: the run and its attempt.
        patience: seconds of failing writes until giving up.

    Attributes:
        ending: the final event, once emitted.
        problem: the error that prevents further events, if any.
        checkpoint_step: the optimiser step of the last checkpoint; 0 if there is none.
    """

    def __init__(self, store: Store, run_id: str, attempt: int, *, patience: float = 60.0) -> None:
        self._store = store
        self._run_id = run_id
        self._attempt = attempt
        self._patience = patience
        self._lock = threading.Condition()  # guards the list; notified when it is empty or given up
        self._events: list[tuple[Event, float]] = []
        self._failing_since: float | None = None
        self._stop = False
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name=f"emitter-{run_id}", daemon=True)
        self.ending: Event | None = None
        self.problem: Exception | None = None
        self.checkpoint_step = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join()

    def emit(self, event: Event) -> None:
        """Report one event; an ending is the last.

        Raises:
            StoreError: events can no longer be written.
        """
        self._refuse_problem()
        if self.ending is not None:
            raise RuntimeError(f"'{event.kind}' was emitted after the ending '{self.ending.kind}'")
        if event.kind in ENDINGS:
            self.ending = event
        if event.kind in ("checkpointed", "resumed"):
            self.checkpoint_step = event.step
        with self._lock:
            self._events.append((event, time.time()))
        if event.kind != "stepped":
            self._wake.set()
        if event.kind == "entered" and event.phase == "saving":
            with self._lock:
                self._lock.wait_for(lambda: not self._events or self.problem is not None)
            self._refuse_problem()

    def _refuse_problem(self) -> None:
        if self.problem is not None:
            raise StoreError(f"the run's events cannot be written: {self.problem}") from self.problem

    def should_stop(self) -> bool:
        """Whether a stop was requested, or events can no longer be written. Cheap to call."""
        return self._stop or self.problem is not None

    def _serve(self) -> None:
        beaten = 0.0
        while self.problem is None and not (self._closing and not self._events):
            if not self._closing:
                self._wake.wait(TICK_SECONDS)
            elif self._failing_since is not None:
                time.sleep(TICK_SECONDS)
            self._wake.clear()
            try:
                self._flush()
                if not self._closing:
                    self._look()
                    if time.monotonic() - beaten >= HEARTBEAT_SECONDS:
                        beaten = time.monotonic()
                        self._store.heartbeat(self._run_id, self._attempt)
            except StoreUnavailableError:
                continue  # a missed check is harmless; `_flush` measures how long writes fail
            except Exception as error:  # raised again in the training thread
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            self.problem = error
            self._lock.notify_all()

    def _flush(self) -> None:
        with self._lock:
            waiting = list(self._events)
        if not waiting:
            return
        events, times = zip(*waiting, strict=True)
        try:
            self._store.append(self._run_id, events, attempt=self._attempt, times=times)
        except StoreUnavailableError as error:
            now = time.monotonic()
            self._failing_since = self._failing_since or now
            if now - self._failing_since >= self._patience:
                self._give_up(error)
            raise
        self._failing_since = None
        with self._lock:
            del self._events[: len(events)]
            self._lock.notify_all()

    def _look(self) -> None:
        signals = self._store.signals(self._run_id)
        if signals.attempt != self._attempt or (signals.status != "running" and self.ending is None):
            raise StoreError(f"run '{self._run_id}' was abandoned by its runner: it is {signals.status}")
        self._stop = signals.stop
