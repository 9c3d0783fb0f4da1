"""Calls in a process with limits: results, limits, and no leftovers of abandoned calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from isoviz.errors import DataError, InputError
from isoviz.jobs import guarded
from isoviz.limits import Limits
from tests.jobs.guarded_work import Told
from tests.runs.observing import until

ROOM = "tests.jobs.guarded_work:"


def ask(name: str, returns: Any = None, allowed: Limits | None = None, **arguments: Any) -> Any:
    return guarded.call(ROOM + name, arguments, returns, imports=(), allowed=allowed or Limits())


def test_results_and_errors_arrive_complete_and_the_process_stays() -> None:
    assert ask("tell", Told, text="Grüße\n", counts={"a": 2}) == Told("Grüße\n", {"a": 2})
    first = ask("whose", int)
    assert first != os.getpid() and ask("whose", int) == first
    with pytest.raises(DataError, match="data: too short") as caught:
        ask("refuse", text="too short")
    assert (caught.value.field, caught.value.advice) == ("data", "Mend it.")
    with pytest.raises(RuntimeError, match=r"(?s)in break_down.*ZeroDivisionError: a bug"):
        ask("break_down")
    assert ask("whose", int) != first  # one that broke down is not asked again


def test_too_much_memory_ends_in_one_line_that_names_the_limit() -> None:
    before = psutil.Process().memory_info().rss
    with pytest.raises(InputError, match=r"data: .* at most 0\.25 GiB of memory \(ISOVIZ_READ_MEMORY\)") as caught:
        ask("take", int, Limits(memory=0.25), gigabytes=2)
    assert caught.value.field == "data" and "\n" not in str(caught.value)
    assert ask("take", int, Limits(memory=0.25), gigabytes=0.1) == int(0.1 * 2**30)
    assert psutil.Process().memory_info().rss - before < 50 * 2**20


def test_a_process_killed_by_the_system_is_reported_as_out_of_memory() -> None:
    with pytest.raises(InputError, match="ISOVIZ_READ_MEMORY"):
        ask("die")
    assert ask("whose", int)


def test_too_long_ends_the_process(tmp_path: Path) -> None:
    pid = ask("whose", int)
    with pytest.raises(InputError, match=r"at most 1 seconds \(ISOVIZ_READ_SECONDS\)"):
        ask("wait", None, Limits(seconds=1), mark=tmp_path / "mark", seconds=600)
    assert not psutil.pid_exists(pid)


def test_a_call_without_a_waiter_ends_with_its_process(tmp_path: Path) -> None:
    class GoneError(BaseException):
        pass

    mark = tmp_path / "mark"

    def pulse() -> None:
        if mark.exists() and mark.read_text():
            raise GoneError

    with pytest.raises(GoneError):
        arguments = {"mark": str(mark), "seconds": 600}
        guarded.call(ROOM + "wait", arguments, None, imports=(), pulse=pulse)
    assert not psutil.pid_exists(int(mark.read_text()))


SCRIPT = """
import sys
from pathlib import Path
from isoviz.jobs import guarded
guarded.call("tests.jobs.guarded_work:wait", {"mark": sys.argv[1], "seconds": 600}, None, imports=())
"""


def test_nothing_is_left_of_a_server_that_was_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(mark)]) as server:
        until(lambda: mark.exists() and mark.read_text())
        reader = psutil.Process(int(mark.read_text()))
        server.kill()
    until(lambda: not reader.is_running() or reader.status() == psutil.STATUS_ZOMBIE)
