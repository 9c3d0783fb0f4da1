"""The runner: one thread per device slot, which claims queued runs and starts a worker process for each."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Protocol

from isoviz import devices
from isoviz.runs.slot import Slots, SlotServer, owner_of
from isoviz.runs.store import RunRow, Store
from isoviz.runs.worker import DEFAULT_TRAIN


class Named(Protocol):
    """A device slot, as the runner needs it."""

    @property
    def name(self) -> str: ...


class Runner:
    """Trains the queued runs of a store on this machine's device slots.

    All state is in the store: a runner can be closed and replaced at any time. Of several on a host, a lock lets one serve each slot;
    the others take over when it ends. Worker processes outlive their runner, and the next one adopts them.

    Args:
        store: the store with the queue.
        slots: the device slots. Default: all of this machine's (`isoviz.devices.describe`).
        train: the training function of the workers, see `isoviz.runs.worker`.
        gpus: of a single slot that has several.
    """

    def __init__(
        self,
        store: Store,
        slots: Sequence[Named] | None = None,
        *,
        train: str = DEFAULT_TRAIN,
        gpus: int | None = None,
    ) -> None:
        self._store = store
        self._slots = slots
        self._gpus = gpus
        self._train = train
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._servers: list[SlotServer] = []
        self._busy = Slots()
        self._expected = False
        self._starter = threading.Thread(target=self._start, name="runner", daemon=True)

    def start(self) -> None:
        """Start the threads. Returns at once, although detecting devices may take seconds."""
        self._starter.start()

    def close(self) -> None:
        """Stop the threads and the spares. Workers continue; the next runner adopts them."""
        self._closing.set()
        if self._starter.ident is not None:
            self._starter.join()
        for thread in self._threads:
            thread.join()

    def drain(self) -> bool:
        """Start no further runs. Returns whether none is running."""
        return self._busy.close()

    def expect(self) -> None:
        """A run may be launched soon: keep a spare ready, so that it starts within a second."""
        self._expected = True
        for server in self._servers:
            server.expect()

    @property
    def run(self) -> RunRow | None:
        """The current run of the first slot that has one."""
        return next((server.run for server in self._servers if server.run is not None), None)

    @property
    def recent(self) -> list[RunRow]:
        """The last two runs that each slot claimed."""
        return [row for server in self._servers for row in server.recent]

    def idle_seconds(self) -> float:
        """How long all slots have found the queue empty; -1 if one has a run or has not looked yet."""
        since = [server.idle_since for server in self._servers]
        known = [moment for moment in since if moment is not None]
        return time.monotonic() - max(known) if known and len(known) == len(since) else -1.0

    @property
    def is_alive(self) -> bool:
        """Whether every slot is served by this runner or, meanwhile, by another one of this host."""
        if self._closing.is_set():
            return False
        return self._starter.is_alive() or (bool(self._threads) and all(thread.is_alive() for thread in self._threads))

    def _start(self) -> None:
        slots = self._slots
        if slots is None:
            try:
                slots = devices.describe().slots
            except Exception:
                # Imports in a process that is ending fail in many ways, and nobody waits for the devices any more.
                if self._closing.is_set() or not threading.main_thread().is_alive():
                    return
                raise
        if self._closing.is_set():
            return
        watched = {owner_of(slot.name) for slot in slots}
        self._busy.names = tuple(slot.name for slot in slots)
        self._busy.gpus = self._gpus or sum(devices.is_gpu(name) for name in self._busy.names) or None
        for slot in slots:
            server = SlotServer(self._store, slot.name, self._busy, self._closing, watched=watched, train=self._train)
            self._servers.append(server)
            if self._expected:  # while it was still looking for devices
                server.expect()
            thread = threading.Thread(target=server.serve, name=f"runner-{slot.name}", daemon=True)
            thread.start()
            self._threads.append(thread)
