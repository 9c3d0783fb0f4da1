"""The runner: a thread that claims queued runs for this machine's device slots, starts a process for each and follows it to its end."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from filelock import Timeout

from isoviz import devices
from isoviz.errors import StoreError
from isoviz.events import ENDINGS, Stopped
from isoviz.jobs.prepared import PreparedWorker
from isoviz.jobs.processes import Process, is_alive, reap
from isoviz.runs.execution import CALL, DEFAULT_TRAIN, LOG, PREPARE
from isoviz.runs.identity import owner_of
from isoviz.runs.recovery import end, file_name, lost, mark_lost, slot_lock
from isoviz.runs.store import RunRow, Store, StoreUnavailableError

POLL_SECONDS: Final = 0.2
WATCH_SECONDS: Final = 0.1
"""Seconds between two checks while a run is training."""
STOP_SECONDS: Final = 1.5
"""How long a worker may take to stop before it is killed. All its processes are gone 2 s after the request."""
STOP_STEPS: Final = 3.0
"""Additional time during training, in optimiser steps: the current step is finished first, and steps differ in length."""
SAVE_SECONDS: Final = 120.0
"""How long a worker may take to save a checkpoint."""
_EXIT_SECONDS: Final = 5.0  # for a worker to exit after its last event; until then it occupies the device
_KILL_SECONDS: Final = 0.5  # most workers die within this; then the runner turns to its other slots
_SWEEP_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
_DELAY_SECONDS: Final = 2.0  # the next prepared worker must not slow the start of a run

_log = logging.getLogger(__name__)


class LocalSlot:
    """A device slot of this machine, such as `cpu` or `cuda:1`. Of several runners on a host, a lock lets one serve it."""

    def __init__(self, store: Store, name: str, train: str) -> None:
        self.name = name
        self.owner = owner_of(name)
        self._lock = slot_lock(store, self.owner)
        file = file_name(self.owner)
        self.prepared = PreparedWorker(
            PREPARE if train == DEFAULT_TRAIN else train.partition(":")[0],
            name,
            lambda count: store.folder / "logs" / f"prepared-{file}-{count % 2}.log",
            fork=True,
        )

    def acquire(self) -> bool:
        """Whether this runner serves the slot: no other one does."""
        if not self._lock.is_locked:
            with suppress(Timeout):
                self._lock.acquire(timeout=0)
        return self._lock.is_locked

    def close(self) -> None:
        """End the prepared worker, and leave the slot to another runner."""
        self.prepared.close()
        self._lock.release()


@dataclass
class _Training:
    """A run with a process that this runner follows.

    Attributes:
        slots: names of the slots that it uses.
        stop_seen, saving_since, ended_since: when the runner saw the request to stop, the saving after it, and the run's end.
        killing: the thread that kills the processes; a process that waits for a device may take long to die.
        forced: the runner kills a run that has not ended, because its stop took too long.
    """

    row: RunRow
    worker: Process
    slots: Sequence[str]
    stop_seen: float | None = None
    saving_since: float | None = None
    ended_since: float | None = None
    killing: threading.Thread | None = None
    forced: bool = False

    def kill(self) -> bool:
        """Kill the processes. Returns whether they are gone or were given up; until then, call it again."""
        if self.killing is None:
            self.killing = threading.Thread(target=self.worker.kill, name="kill", daemon=True)
            self.killing.start()
            self.killing.join(_KILL_SECONDS)
        return not self.killing.is_alive()


class Runner:
    """Trains the queued runs of a store on this machine's device slots.

    All state is in the store: a runner can be closed and replaced at any time. Of several on a host, the one with the first slot serves
    all; the others take over when it ends. Worker processes outlive their runner, and the next one adopts them.

    Args:
        store: the store with the queue.
        slots: names of the device slots. Default: all of this machine's (`isoviz.devices.describe`).
        train: the training function of the workers, see `isoviz.runs.execution`.
        gpus: of a single slot that has several.

    Attributes:
        recent: the last two runs claimed.
    """

    def __init__(
        self, store: Store, slots: Sequence[str] | None = None, *, train: str = DEFAULT_TRAIN, gpus: int | None = None
    ) -> None:
        self._store = store
        self._names = slots
        self._gpus = gpus
        self._train = train
        self._slots: list[LocalSlot] = []
        self._adopted: set[str] = set()
        self._trainings: dict[str, _Training] = {}
        self._pending: tuple[RunRow, LocalSlot] | None = None  # a run that waits for as many free slots as it needs
        self._claiming = threading.Lock()
        self._draining = False
        self._closing = threading.Event()
        self._expected = False
        self._idle_since: float | None = None
        self._sweep_due = 0.0
        self._thread = threading.Thread(target=self._serve, name="runner", daemon=True)
        self.recent: deque[RunRow] = deque(maxlen=2)

    def start(self) -> None:
        """Start the thread. Returns at once, although detecting devices may take seconds."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and the prepared workers. Workers continue; the next runner adopts them."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def drain(self) -> bool:
        """Start no further runs. Returns whether none is running."""
        with self._claiming:
            self._draining = True
            return self.run is None

    def release(self) -> None:
        """Stop the runs with a checkpoint and put them back into the queue. Returns once their processes are gone."""
        held: dict[str, RunRow] = {}
        while not self.drain():
            held |= {training.row.id: training.row for training in list(self._trainings.values())}
            for row in held.values():
                with suppress(StoreUnavailableError):
                    self._store.request_release(row.id, row.attempt)
            time.sleep(POLL_SECONDS)
        for row in held.values():
            with suppress(StoreUnavailableError):
                self._store.release(row.id, row.attempt)

    def expect(self) -> None:
        """A run may be launched soon: keep a worker ready, so that it starts within a second."""
        self._expected = True
        for slot in self._slots:
            slot.prepared.expect()

    @property
    def run(self) -> RunRow | None:
        """The current run, or one of them."""
        pending = self._pending
        return next((training.row for training in list(self._trainings.values())), pending[0] if pending else None)

    def idle_seconds(self) -> float:
        """How long the queue has been empty; -1 while a run is training, and before the first check."""
        since = self._idle_since
        return -1.0 if since is None or self.run is not None else time.monotonic() - since

    @property
    def is_alive(self) -> bool:
        """Whether every slot is served by this runner or, meanwhile, by another one of this host."""
        return not self._closing.is_set() and self._thread.is_alive()

    # ------------------------------------------------------------------ the thread

    def _serve(self) -> None:
        names = self._names or [slot.name for slot in devices.describe().slots]
        self._gpus = self._gpus or sum(map(devices.is_gpu, names)) or None
        self._slots = [LocalSlot(self._store, name, self._train) for name in names]
        if self._expected:  # while it was still looking for devices
            self.expect()
        try:
            while not self._closing.is_set():
                pause = WATCH_SECONDS if self._trainings else POLL_SECONDS
                try:
                    self._turn()
                except Exception as error:  # the runner continues, and adopts what it may have lost track of
                    self._adopted.clear()
                    _log.warning("runner: %s", error, exc_info=not isinstance(error, StoreUnavailableError))
                    pause = _RETRY_SECONDS
                self._closing.wait(pause)
            if self._pending is not None:
                with suppress(StoreUnavailableError):
                    self._store.release(self._pending[0].id, self._pending[0].attempt)
        finally:
            for slot in self._slots:
                slot.close()

    def _turn(self) -> None:
        # In order, so that two runners that start together do not share the slots: a run on several needs them from one.
        served = list(takewhile(LocalSlot.acquire, self._slots))
        if not served:
            return
        if any(slot.name not in self._adopted for slot in served):
            self._adopt({slot.owner for slot in served})
            self._adopted = {slot.name for slot in served}
        for training in list(self._trainings.values()):
            try:
                self._follow(training)
            except StoreUnavailableError as error:
                _log.warning("run %s: %s", training.row.id, error)
        if time.monotonic() >= self._sweep_due:
            self._sweep_due = time.monotonic() + _SWEEP_SECONDS
            for run_id in mark_lost(self._store, {slot.owner for slot in self._slots}):
                _log.warning("run %s is lost", run_id)
            reap()
            if self._store.list(status="queued", order="queue", limit=1):
                self.expect()
        for slot in served:
            slot.prepared.check()
        while self._start_next(served):
            pass

    def _adopt(self, owners: set[str]) -> None:
        """Follow runs of these slots that an earlier runner, or this one before an error, started."""
        pending = self._pending and self._pending[0].id
        for row in self._store.held_runs():
            if row.status != "running" or row.owner not in owners or row.id in (*self._trainings, pending):
                continue
            if row.pid is None or row.pid_started is None:
                self._store.release(row.id, row.attempt)
            elif is_alive(row.pid, row.pid_started):
                _log.info("run %s: adopted its worker %d", row.id, row.pid)
                worker = Process(row.pid, row.pid_started)
                self._trainings[row.id] = _Training(row, worker, (row.device or "").split(","))
            else:
                end(self._store, row.id, row.attempt, lost(None))

    def _free(self, served: Sequence[LocalSlot]) -> list[LocalSlot]:
        """The served slots that no run uses, including one that another runner of this machine still follows."""
        used = {name for training in self._trainings.values() for name in training.slots}
        if self._pending is not None:
            used.add(self._pending[1].name)
        free = [slot for slot in served if slot.name not in used]
        if free and len(self._slots) > 1:
            owners = {slot.owner for slot in self._slots}
            others = [row for row in self._store.held_runs() if row.owner in owners and row.pid is not None]
            used = {name for row in others if row.status == "running" for name in (row.device or "").split(",")}
        return [slot for slot in free if slot.name not in used]

    def _start_next(self, served: Sequence[LocalSlot]) -> bool:
        """Claim and start the next run if there is room for it. Returns whether another one may follow."""
        free = self._free(served)
        with self._claiming:
            if self._pending is None:
                slot = next((slot for slot in free if not slot.prepared.preparing), None)
                if slot is None or self._draining:
                    return False
                row = self._store.claim(slot.owner, slot.name, gpus=self._gpus)
                if row is None:
                    self._idle_since = self._idle_since or time.monotonic()
                    return False
                self._pending, self._idle_since = (row, slot), None
                self.recent.append(row)
        row, slot = self._pending
        # On a CPU all processes of a run share one slot.
        width = min(row.config.processes, len(self._slots)) if devices.is_gpu(slot.name) else 1
        names = [slot.name, *(other.name for other in free if other is not slot)][:width]
        if len(names) == width:
            try:
                self._trainings[row.id] = self._start(row, slot, names)
            finally:
                self._pending = None
            return True
        try:  # it waits for more free slots; until then no other run starts
            signals = self._store.signals(row.id)
            if not signals.stop:
                self._store.heartbeat(row.id, row.attempt)
                return False
            end(self._store, row.id, row.attempt, Stopped(step=signals.checkpoint_step))
        except StoreUnavailableError:
            raise
        except StoreError as error:  # another program has ended or deleted it
            _log.warning("run %s: %s", row.id, error)
        self._pending = None
        return True

    def _start(self, row: RunRow, slot: LocalSlot, names: Sequence[str]) -> _Training:
        log = self._store.folder_of(row.id) / LOG
        slot.prepared.expect()  # another run may follow soon
        order = {"store": self._store.url, "run": row.id, "train": self._train, "attempt": row.attempt}
        if len(names) > 1:
            order |= {"devices": devices.visible(names), "slots": ",".join(names)}
        worker = slot.prepared.order(CALL, order, log)
        slot.prepared.postpone(_DELAY_SECONDS)
        with suppress(StoreError):  # it does the same, and may have ended
            self._store.set_worker(row.id, worker.pid, worker.started, row.attempt, ",".join(names))
        return _Training(row, worker, names)

    def _follow(self, training: _Training) -> None:
        """Check on a run until its processes are gone and it has an ending: stop it on request, and note if it is lost."""
        row, worker, now = training.row, training.worker, time.monotonic()
        gone = worker.gone  # read before the signals, so that these include its last events
        try:
            signals = self._store.signals(row.id)
        except StoreUnavailableError:
            raise
        except StoreError:  # deleted right after its end
            if training.kill():
                self._forget(training)
            return
        if signals.status in ENDINGS or signals.attempt != row.attempt:
            training.ended_since = training.ended_since or now
            if (gone or now - training.ended_since > _EXIT_SECONDS) and training.kill():
                self._forget(training)
        elif gone or training.forced:
            if training.kill():
                stopped = Stopped(step=signals.checkpoint_step, forced=True)
                end(self._store, row.id, row.attempt, stopped if training.forced else lost(worker.exit_code))
                self._forget(training)
        elif signals.stop:
            training.stop_seen = training.stop_seen or now
            if signals.phase == "saving":
                training.saving_since = training.saving_since or now
            elif training.saving_since is not None:  # saved; what it does next may take as long as after a request
                training.saving_since, training.stop_seen = None, now
            steps = STOP_STEPS * signals.step_seconds if signals.phase == "training" else 0.0
            deadline = training.stop_seen + STOP_SECONDS + steps
            if training.saving_since is not None:
                deadline = training.saving_since + SAVE_SECONDS
            if now >= deadline:
                training.forced = True
                training.kill()
                self._follow(training)

    def _forget(self, training: _Training) -> None:
        del self._trainings[training.row.id]
        self._idle_since = None
