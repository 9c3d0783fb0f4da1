"""Workers of views that wait, so that they can be looked at without racing them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from filelock import FileLock

from isoviz.exploring import results, worker


@contextlib.contextmanager
def all_turns_taken() -> Iterator[None]:
    """A worker of this test's home that begins now waits for its turn until the block ends."""
    folder = results.root() / "turns"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        for number in range(worker.turns()):
            held.enter_context(FileLock(folder / f"{number}.lock"))
        yield
