"""One thread for what takes longer than a slider's move. It belongs to the process, not to a page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, Final

_KEPT: Final = 64


class Background:
    """Computes one thing at a time, the newest wish of each viewer only.

    A wish that has begun is finished: it is kept, and somebody may come back to it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._wishes: OrderedDict[str, Future[Any]] = OrderedDict()
        self._latest: dict[str, str] = {}

    def ask(self, viewer: str, key: str, compute: Callable[[], Any]) -> Future[Any]:
        """The future of `compute()`, shared by all who ask for this key. A viewer's older wish is dropped unless it runs."""
        with self._lock:
            older = self._latest.get(viewer)
            dropped = self._wishes.get(older) if older is not None and older != key else None
            if dropped is not None and sum(wish == older for wish in self._latest.values()) == 1:
                dropped.cancel()
            self._latest[viewer] = key
            found = self._wishes.get(key)
            if found is None or found.cancelled() or (found.done() and found.exception() is not None):
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(1, "what-if")
                found = self._pool.submit(compute)
                self._wishes[key] = found
            while len(self._wishes) > _KEPT and next(iter(self._wishes.values())).done():
                self._wishes.popitem(last=False)
            while len(self._latest) > 10 * _KEPT:
                del self._latest[next(iter(self._latest))]
            return found

    def close(self) -> None:
        """Drop what has not begun, and wait for what has."""
        with self._lock:
            pool, self._pool = self._pool, None
            self._wishes.clear()
            self._latest.clear()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


BACKGROUND: Final = Background()
"""That of this process."""


def settled(future: Future[Any]) -> bool:
    """Whether there is a result (and no error)."""
    try:
        return future.done() and future.exception() is None
    except CancelledError:
        return False
