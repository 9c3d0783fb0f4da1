"""One of several processes that train a run: `accelerate launch … -m isoviz.training.member`.

Processes on the machine of the command or the app report to it (`isoviz.training.distributed`); those on other machines receive the
run's configuration from the other processes.
"""

from __future__ import annotations

import os
import sys
import traceback
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

from isoviz import errors
from isoviz.config import RunConfig
from isoviz.events import Event
from isoviz.training.distributed import ADDRESS, KEY, STOP, STORED, receive, send


class Reporter:
    """A process's connection to the reporting process. Without a connection, as on another machine, it does nothing."""

    def __init__(self, rank: int) -> None:
        self._line: Any = None  # a Connection, on Windows a PipeConnection
        self._stop = False
        if ADDRESS in os.environ:
            self._line = Client(os.environ[ADDRESS], authkey=bytes.fromhex(os.environ[KEY]))
        self.send("rank", rank)

    def send(self, what: str, value: object = None) -> None:
        """Send a message, if connected."""
        if self._line is not None:
            send(self._line, (what, value))

    def order(self) -> dict[str, Any]:
        """The run to train, as the owning process sends it to the first rank."""
        if self._line is None:
            raise SystemExit("isoviz.training.member: start the run with `isoviz train` on the first machine")
        order: dict[str, Any] = receive(self._line)
        return order

    def emit(self, event: Event) -> None:
        """Send an event, and wait until it is stored."""
        assert self._line is not None
        self.send("event", event.model_dump(mode="json"))
        while (answer := receive(self._line)) != STORED:
            self._stop = self._stop or answer == STOP

    def should_stop(self) -> bool:
        """Whether a stop was requested. Raises `EOFError` if the reporting process has ended."""
        assert self._line is not None
        while self._line.poll():
            self._stop = receive(self._line) == STOP or self._stop
        return self._stop


def main() -> int:
    """Train; returns exit code 1 on failure."""
    rank = int(os.environ.get("RANK", "0"))  # a launch of one process does not set it
    reporter = Reporter(rank)
    try:
        from isoviz.training import sharding

        sharding.take_over()
        told = reporter.order() if rank == 0 else {}
        from isoviz.training import processes

        processes.begin()
        order = processes.broadcast(told)
        _train(order, reporter if rank == 0 else None)
    except BaseException as error:
        traceback.print_exc()
        reporter.send("failed", errors.to_json(error))
        return 1
    reporter.send("done")
    return 0


def _train(order: dict[str, Any], reporter: Reporter | None) -> None:
    from isoviz.training.loop import train_here

    config = RunConfig.model_validate_json(order["config"])
    emit = reporter.emit if reporter else lambda event: None
    should_stop = reporter.should_stop if reporter else lambda: False
    train_here(config, emit, should_stop, Path(order["run_dir"]), order["resume"])


if __name__ == "__main__":
    sys.exit(main())
