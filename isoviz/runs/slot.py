"""The runner's thread for one device slot: claims runs, starts and watches their processes, stops them, and notes those that are lost."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import Timeout

from isoviz import devices, fence
from isoviz.events import ENDINGS, Stopped
from isoviz.home import make_private
from isoviz.jobs import scheduling
from isoviz.jobs.processes import Process, is_alive, reap
from isoviz.jobs.spares import SpareKeeper
from isoviz.runs.execution import LOG
from isoviz.runs.identity import host_name
from isoviz.runs.recovery import end, file_name, lost, mark_lost, slot_lock
from isoviz.runs.store import RunRow, Store, StoreUnavailableError
from isoviz.runs.worker import CALL, DEFAULT_TRAIN, RUN

POLL_SECONDS: Final = 0.2
WATCH_SECONDS: Final = 0.1
STOP_SECONDS: Final = 1.5
"""How long a worker may take to stop before it is killed. All its processes are gone 2 s after the request."""
STOP_STEPS: Final = 3.0
"""Additional time during training, in optimiser steps: the current step is finished first, and steps differ in length."""
SAVE_SECONDS: Final = 120.0
"""How long a worker may take to save a checkpoint."""
_EXIT_SECONDS: Final = 5.0  # for a worker to exit after its last event; until then it occupies the device
_SWEEP_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
_SPARE_DELAY_SECONDS: Final = 2.0  # the next spare must not slow the start of a run
HOLD_SECONDS: Final = 120.0
"""How long a queued run gives way to visitors' jobs. There is a limit because a whole class may never stop submitting jobs."""

_log = logging.getLogger(__name__)


def owner_of(slot: str) -> str:
    """The owner under which this host's runner claims runs for a slot."""
    return f"{host_name()}/{slot}"


class Slots:
    """Which of this machine's slots are in use, for runs that train on several.

    Attributes:
        names: names of all slots.
        gpus: number of GPUs in all slots; None without GPUs.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(names)
        self.gpus: int | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._busy: dict[str, str] = {}  # slot → the slot whose server uses it
        self._adopted: dict[str, str] = {}  # the part of `_busy` from `adopt`
        self._waiting: str | None = None  # the server whose run needs more slots than are free

    def take(self, slot: str) -> bool:
        """Reserve a slot for its own server until `release`. False if it is in use or another server waits for slots."""
        with self._lock:
            if self._closed or slot in self._busy or self._waiting is not None:
                return False
            self._busy[slot] = slot
            return True

    def extend(self, slot: str, count: int) -> tuple[str, ...] | None:
        """Reserve `count` slots for a run, the server's own first. None while too few are free; until then no other run starts."""
        with self._lock:
            free = [name for name in self.names if name not in self._busy]
            if self._waiting not in (None, slot) or len(free) < count - 1:
                self._waiting = self._waiting or slot
                return None
            self._waiting = None
            self._busy |= dict.fromkeys(free[: count - 1], slot)
            return slot, *free[: count - 1]

    def adopt(self, busy: Mapping[str, Iterable[str]]) -> None:
        """Reserve the slots of runs that an earlier runner started. Replaces what the last call reserved.

        Args:
            busy: the run's slots, by the slot whose server watches it.
        """
        with self._lock:
            own = {name: server for name, server in self._busy.items() if name not in self._adopted}
            self._adopted = {name: server for server, names in busy.items() for name in names if name not in own}
            self._busy = own | self._adopted

    @property
    def has_adopted(self) -> bool:
        """Whether slots of `adopt` are still reserved."""
        return bool(self._adopted)

    def close(self) -> bool:
        """Start no further runs. Returns whether none is running."""
        with self._lock:
            self._closed = True
            return not self._busy

    def release(self, slot: str) -> None:
        """Free the slots that a server has reserved."""
        with self._lock:
            self._busy = {name: server for name, server in self._busy.items() if server != slot}
            self._adopted = {name: server for name, server in self._adopted.items() if server != slot}
            self._waiting = None if self._waiting == slot else self._waiting


class SlotServer:
    """Serves one slot from one thread.

    Args:
        store: the store with the queue.
        slot: the slot's name, such as `cpu` or `cuda:1`.
        slots: all slots of this machine.
        closing: set to end the thread.
        watched: the owners that the threads of this host claim for.
        train: see `isoviz.runs.worker`.

    Attributes:
        run: the current run.
        recent: the last two runs claimed.
        idle_since: when it found the queue empty, on the monotonic clock; None while it has a run or has not looked.
    """

    def __init__(
        self, store: Store, slot: str, slots: Slots, closing: threading.Event, *, watched: Set[str], train: str
    ) -> None:
        self._store = store
        self._slot = slot
        self._slots = slots
        self._closing = closing
        self._watched = watched
        self._train = train
        self._owner = owner_of(slot)
        name = file_name(self._owner)
        self._spare = SpareKeeper(
            RUN.prepare if train == DEFAULT_TRAIN else train.partition(":")[0],
            slot,
            lambda count: store.folder / "logs" / f"spare-{name}-{count % 2}.log",
            store.folder / "locks" / f"spare-{name}",
            fork=True,
        )
        self.run: RunRow | None = None
        self.recent: deque[RunRow] = deque(maxlen=2)
        self.idle_since: float | None = None
        self._held_since: float | None = None
        self._sweep_due = 0.0
        self._look_due = 0.0

    def expect(self) -> None:
        """A run is about to be launched: the app that serves the slot keeps a spare ready for a while."""
        self._spare.expectation.renew()

    def serve(self) -> None:
        """Wait for the slot's lock, then serve the slot until `closing`."""
        try:
            with self._lock() as locked:
                adopted = False
                while locked and not self._closing.is_set():
                    try:
                        if not adopted:
                            self._adopt()
                        adopted = True
                        self._turn()
                    except Exception as error:
                        # The slot continues after any error, and adopts its current run like one left by another runner.
                        adopted = False
                        expected = isinstance(error, StoreUnavailableError)
                        _log.warning("slot %s: %s", self._slot, error, exc_info=not expected)
                        self._closing.wait(_RETRY_SECONDS)
        finally:
            self._spare.close()

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Acquire the lock of this host and slot. False if the runner closes first."""
        lock = slot_lock(self._store, self._owner)
        while not self._closing.is_set():
            try:
                with lock.acquire(timeout=0):
                    yield True
                return
            except Timeout:
                self._closing.wait(2 * POLL_SECONDS)
        yield False

    def _turn(self) -> None:
        if time.monotonic() >= self._sweep_due:
            for run_id in mark_lost(self._store, self._watched):
                _log.warning("run %s is lost", run_id)
            self._sweep_due = time.monotonic() + _SWEEP_SECONDS
            reap()
            if self._slots.has_adopted:  # another runner may have watched them to their end
                self._reserve_running()
        self._tend_spare()
        if self._spare.preparing or self._held() or not self._slots.take(self._slot):
            self._closing.wait(POLL_SECONDS)
            return
        try:
            row = self._store.claim(self._owner, self._slot, gpus=self._slots.gpus)
            if row is None:
                self.idle_since = self.idle_since or time.monotonic()
                self._closing.wait(POLL_SECONDS)
            else:
                self.run, self.idle_since = row, None
                self.recent.append(row)
                self._drive(row)
        finally:
            self.run = None
            self._slots.release(self._slot)

    def _held(self) -> bool:
        """Whether to give way to visitors' waiting jobs, which a run would slow down."""
        if not scheduling.waiting_above(RUN.priority):
            self._held_since = None
            return False
        self._held_since = self._held_since or time.monotonic()
        return time.monotonic() - self._held_since < HOLD_SECONDS

    def _adopt(self) -> None:
        """Continue to watch runs of this slot that an earlier runner, or this one before an error, started."""
        self._reserve_running()
        try:
            for row in self._store.list(status="running"):
                if row.owner != self._owner:
                    continue
                if row.pid is None or row.pid_started is None:
                    self._store.unclaim(row.id, row.attempt)
                elif is_alive(row.pid, row.pid_started):
                    _log.info("run %s: adopted its worker %d", row.id, row.pid)
                    self._watch(row, Process(row.pid, row.pid_started))
                else:
                    end(self._store, row.id, row.attempt, lost(None))
        finally:
            self._slots.release(self._slot)

    def _reserve_running(self) -> None:
        """Reserve the slots of all running runs of this machine, before this server claims any, as the other servers may be late."""
        running = [row for row in self._store.held_runs() if row.status == "running" and row.pid is not None]
        servers = {owner_of(name): name for name in self._slots.names}
        self._slots.adopt(
            {servers[row.owner]: row.device.split(",") for row in running if row.owner in servers and row.device}
        )

    def _width(self, row: RunRow) -> int:
        """How many slots a run needs. On a CPU all its processes share one."""
        return min(row.config.processes, len(self._slots.names)) if devices.is_gpu(self._slot) else 1

    def _all_slots(self, row: RunRow) -> tuple[str, ...] | None:
        """Wait for the slots of a run. None if the run is stopped or the runner closes first."""
        while not self._closing.is_set():
            if (slots := self._slots.extend(self._slot, self._width(row))) is not None:
                return slots
            signals = self._store.signals(row.id)
            if signals.stop:
                end(self._store, row.id, row.attempt, Stopped(step=signals.checkpoint_step))
                return None
            self._store.heartbeat(row.id, row.attempt)
            self._closing.wait(POLL_SECONDS)
        self._store.unclaim(row.id, row.attempt)
        return None

    def _drive(self, row: RunRow) -> None:
        slots = self._all_slots(row)
        if slots is None:
            return
        log = self._store.folder_of(row.id) / LOG
        before = _size(log)
        self.expect()  # another run may follow soon
        spare = self._spare.take() or self._spare.new()
        self._spare.postpone(_SPARE_DELAY_SECONDS)
        # The store first: if this process dies in between, the spare dies with it, and its recorded id shows that.
        self._store.set_worker(row.id, spare.pid, spare.started, device=",".join(slots))
        try:
            order = {"store": self._store.url, "run": row.id, "train": self._train, "roots": _roots_for(row)}
            spare.order(CALL, order | ({"devices": devices.visible(slots)} if len(slots) > 1 else {}), log)
        except OSError as error:  # it has just died, which `_watch` notices
            _log.warning("run %s: the spare worker is gone: %s", row.id, error)
        self._watch(row, spare)
        if spare.gone and _size(log) == before:
            # It ended before it opened its own log; its output is in the spare's.
            make_private(log.parent)
            with log.open("ab") as file:
                file.write(spare.log.read_bytes())

    def _watch(self, row: RunRow, worker: Process) -> None:
        """Watch a worker until it and its children are gone and the run has an ending, or the runner closes."""
        requested: float | None = None
        saving: float | None = None
        ended: float | None = None
        killed = False
        while not self._closing.is_set():
            try:
                gone = worker.gone  # read before the signals, so that these include its last events
                signals = self._store.signals(row.id)
                now = time.monotonic()
                if signals.status in ENDINGS or signals.attempt != row.attempt:
                    ended = ended or now
                    if gone or now - ended > _EXIT_SECONDS:
                        worker.kill()
                        return
                elif killed:
                    end(self._store, row.id, row.attempt, Stopped(step=signals.checkpoint_step, forced=True))
                    return
                elif gone:
                    worker.kill()
                    end(self._store, row.id, row.attempt, lost(worker.exit_code))
                    return
                elif signals.stop:
                    requested = requested or now
                    saving = saving or now if signals.phase == "saving" else None
                    steps = STOP_STEPS * signals.step_seconds if signals.phase == "training" else 0.0
                    patience = requested + STOP_SECONDS + steps if saving is None else saving + SAVE_SECONDS
                    if signals.at_once or now >= patience:
                        worker.kill()
                        killed = True
                        continue
                self._tend_spare()
            except StoreUnavailableError as error:
                _log.warning("run %s: %s", row.id, error)
            self._closing.wait(WATCH_SECONDS)

    def _tend_spare(self) -> None:
        if time.monotonic() >= self._look_due:
            if self._store.list(status="queued", order="queue", limit=1):
                self.expect()
            self._look_due = time.monotonic() + _SWEEP_SECONDS
        exit_code = self._spare.tend()
        if exit_code is not None:
            _log.warning("slot %s: the spare worker ended with %s", self._slot, exit_code)


def _roots_for(row: RunRow) -> dict[str, list[str]] | None:
    """Folders that a run's process may read: restricted for visitors, as on the pages."""
    roots = fence.roots() if row.visitor is not None else None
    return None if roots is None else roots.as_json()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
