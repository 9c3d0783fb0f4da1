"""Stop requests by signals: Ctrl-C, `kill`, `docker stop`, a scheduler's time limit, a closed terminal.

After the first signal, training ends after the current optimiser step, with a checkpoint. The second ends it immediately. A third
kills the process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_REPEAT_SECONDS: Final = 1.0
"""Signals within this many seconds count as one, because schedulers send SIGTERM to a process and to its group."""
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")


class StoppedAtOnceError(KeyboardInterrupt):
    """Raised by the second signal: stop immediately.

    Args:
        number: number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def gentle_stop(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Context that handles stop signals as described above; returns whether one has arrived. Only for the main thread.

    Args:
        say: prints a line after the first signal.
    """
    # without SIGHUP if it is ignored (nohup)
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    if before.get(getattr(signal, "SIGHUP", None)) is signal.SIG_IGN:
        del before[signal.SIGHUP]
    asked: list[float] = []

    def handle(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not asked:
            asked.append(now)
            again = "press Ctrl-C again to end at once" if number == signal.SIGINT else signal.Signals(number).name
            say(f"stopping after this step ({again})")
        elif number == signal.SIGINT or now - asked[0] >= _REPEAT_SECONDS:
            for name in before:
                signal.signal(name, signal.SIG_DFL)
            raise StoppedAtOnceError(number)

    for number in before:
        signal.signal(number, handle)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
