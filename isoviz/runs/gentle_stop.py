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


class GentleStop:
    """Result of `gentle_stop`: call it to check for a stop signal."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._asked: float | None = None

    def __call__(self) -> bool:
        """Whether a stop signal has arrived."""
        return self._asked is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
            again = "press Ctrl-C again to end at once" if number == signal.SIGINT else signal.Signals(number).name
            self._say(f"stopping after this step ({again})")
        elif number == signal.SIGINT or now - self._asked >= _REPEAT_SECONDS:
            for name in _available():
                signal.signal(name, signal.SIG_DFL)
            raise StoppedAtOnceError(number)


@contextmanager
def gentle_stop(say: Callable[[str], None]) -> Iterator[GentleStop]:
    """Context that handles stop signals as described above. Only for the main thread.

    Args:
        say: prints a line after the first signal.
    """
    stop = GentleStop(say)
    before = {number: signal.getsignal(number) for number in _available()}
    for number in before:
        signal.signal(number, stop._handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _available() -> list[signal.Signals]:
    """The stop signals of this platform, without SIGHUP if it is ignored (nohup)."""
    signals = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in signals if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN]
