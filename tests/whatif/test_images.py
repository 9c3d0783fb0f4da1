"""The shared cache under threads: an entry is made once, and an error reaches everyone who waited for it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from isoviz.whatif.images import SharedCache

THREADS = 8


def test_all_who_wait_for_an_entry_share_it_or_its_error():
    cache = SharedCache(lambda _: 1, limit=10)
    calls: list[str] = []
    barrier = threading.Barrier(THREADS)

    def make() -> str:
        calls.append("made")
        time.sleep(0.3)
        if len(calls) == 1:
            raise ValueError("not this time")
        return "entry"

    def visit(_: int) -> str:
        barrier.wait()
        try:
            return cache.get("key", make)
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(visit, range(THREADS))) == ["not this time"] * THREADS
        assert len(calls) == 1
        assert list(pool.map(visit, range(THREADS))) == ["entry"] * THREADS
    assert len(calls) == 2 and cache.get("key") == "entry"


def test_the_least_recently_used_entry_goes_first():
    cache = SharedCache(lambda _: 1, limit=2)
    for key in ("first", "second"):
        cache.get(key, key.upper)
    cache.get("first")
    cache.get("third", "third".upper)
    assert [cache.get(key) for key in ("first", "second", "third")] == ["FIRST", None, "THIRD"]
