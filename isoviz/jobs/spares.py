"""A spare: a process that has imported what the next job needs, so that it begins within a second."""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from isoviz.jobs.processes import Spare

MEMORY: Final = 2 * 2**30
"""Bytes that must be free for a spare to be kept: it holds as much as torch and transformers take."""
RETRY_SECONDS: Final = 30.0
"""Before another one is started where the last one ended by itself."""


class SpareKeeper:
    """Keeps at most one spare. Call `tend` several times a second.

    Args:
        prepare: what it imports, see `isoviz.jobs.processes.Spare`.
        slot: the device slot it is for; `any` for all.
        log: the file for the output of the nth spare until it has work; the one before may still be writing to its own.
        always: keep one at all times; otherwise only after `expect`, and only where memory is not short.
    """

    def __init__(self, prepare: str, slot: str, log: Callable[[int], Path], *, always: bool = False) -> None:
        self.prepare = prepare
        self._slot = slot
        self._log = log
        self._always = always
        self._lock = threading.Lock()
        self._spare: Spare | None = None
        self._surroundings = ""
        self._until = math.inf if always else -math.inf
        self._due = -math.inf
        self._count = 0

    @property
    def pid(self) -> int | None:
        """Its process id, if there is one."""
        return None if self._spare is None else self._spare.pid

    def expect(self, seconds: float) -> None:
        """Somebody is about to ask for work: have one within seconds, and keep it for so long after the last such call."""
        self._until = time.monotonic() + seconds

    def postpone(self, seconds: float) -> None:
        """Start none for so long: importing takes a processor for some seconds, from what has just begun."""
        self._due = time.monotonic() + seconds

    def tend(self) -> int | None:
        """Start one where one is due, let go of one that nobody expects any more.

        Returns:
            The exit code of one that ended by itself, once.
        """
        with self._lock:
            ended = None
            if self._spare is not None and self._spare.gone:
                ended, self._spare = self._spare.exit_code, None
                self.postpone(RETRY_SECONDS)
            now = time.monotonic()
            if now >= self._until and self._spare is not None:
                self._spare.kill()
                self._spare = None
            due = self._spare is None and self._due <= now < self._until
            if due and (self._always or psutil.virtual_memory().available >= MEMORY):
                self._spare = self.new()
            return ended

    def take(self) -> Spare | None:
        """The spare, if it lives and has the surroundings that a new process would have; the caller's from now on."""
        with self._lock:
            spare, self._spare = self._spare, None
            if spare is None or spare.gone:
                return None
            if self._surroundings != surroundings():
                spare.kill()
                return None
            return spare

    def new(self) -> Spare:
        """Another one, whether or not there is one; the caller's."""
        self._count += 1
        self._surroundings = surroundings()
        return Spare(self.prepare, self._slot, self._log(self._count))

    def close(self) -> None:
        """End it, and start no other."""
        with self._lock:
            spare, self._spare, self._until = self._spare, None, -math.inf
        if spare is not None:
            spare.kill()


def surroundings() -> str:
    """Sixteen hex digits of what decides, in the environment, where models, data and devices are; it may hold passwords."""
    chosen = sorted(entry for entry in os.environ.items() if entry[0].startswith(("ISOVIZ_", "HF_", "CUDA_")))
    return hashlib.sha256(repr(chosen).encode()).hexdigest()[:16]
