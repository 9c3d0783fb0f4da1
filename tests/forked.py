"""`isoviz …` in a fork of a process that has imported its libraries: a process of its own, without the seconds that a start takes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from isoviz.__main__ import main
from isoviz.runs.execution import PRELOADED

Program = Callable[[Sequence[str]], int]
_FORKS = multiprocessing.get_context("forkserver")


class Command:
    """A command that has been started, like a `subprocess.Popen`; it prints into files below `folder`.

    Args:
        environment: of the command, and at the first start of what all commands are forked from.
        program: a function of a module, which gets the words and returns the exit code.
    """

    def __init__(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], program: Program = main
    ) -> None:
        self.words = words
        self._files = [folder / f"{name}-{time.time_ns()}.log" for name in ("stdout", "stderr")]
        with patch.dict(os.environ, environment):
            _FORKS.set_forkserver_preload([__name__, *PRELOADED])
            self._process = _FORKS.Process(target=_carry_out, args=(program, words, folder, environment, self._files))
            self._process.start()

    @property
    def stdout(self) -> str:
        return self._files[0].read_text() if self._files[0].exists() else ""

    @property
    def stderr(self) -> str:
        return self._files[1].read_text() if self._files[1].exists() else ""

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"{self.words} has not ended\n{self.stderr[-3000:]}"
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _carry_out(
    program: Program, words: Sequence[str], folder: Path, environment: Mapping[str, str], files: Sequence[Path]
) -> None:
    for file, stream in zip(files, (sys.stdout, sys.stderr), strict=True):
        with file.open("wb") as output:
            os.dup2(output.fileno(), stream.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background may ignore it
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.exit(program(words))
