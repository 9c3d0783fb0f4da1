"""Being asked to stop by the system: Ctrl-C, `kill`, `docker stop`, a scheduler's time limit, a terminal that is closed.

The first signal is a wish: training ends after the optimiser step at hand, with a checkpoint. The second ends it at once. A third
ends the process without a word.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_REPEAT_SECONDS: Final = 1.0
"""Schedulers send SIGTERM to a process and to its group: what comes twice at once is one wish. Fingers are not so fast."""
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")


class StoppedAtOnceError(KeyboardInterrupt):
    """The second signal: nothing is waited for.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class GentleStop:
    """What `gentle_stop` gives: call it to hear whether a signal asked to stop."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._asked: float | None = None

    def __call__(self) -> bool:
        """Whether a signal has come."""
        return self._asked is not None

    def _heard(self, number: int, frame: FrameType | None) -> None:
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
    """Within the block, signals that ask this process to end are heard as above. For the main thread.

    Args:
        say: takes a line for the person who sent the first one.
    """
    stop = GentleStop(say)
    before = {number: signal.getsignal(number) for number in _available()}
    for number in before:
        signal.signal(number, stop._heard)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _available() -> list[signal.Signals]:
    """The signals of this platform; not the end of a terminal where someone (nohup) has arranged to outlive it."""
    found = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in found if sys.platform == "win32" or not _outlived(number)]


def _outlived(number: signal.Signals) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
