"""Jobs with real processes: one per key, watched, stopped and retried; what may run at once, and who goes first."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from isoviz.home import home
from isoviz.jobs import kinds, queue
from isoviz.jobs.kinds import JobKind
from tests.jobs.conftest import settled
from tests.jobs.here import ask, work_here
from tests.jobs.light import BROKEN, LIGHT, OTHER, STORE, WARM
from tests.runs.observing import gone, until

X = {"x": np.arange(3.0)}


def running(kind: JobKind, key: str) -> int:
    """Wait until the job is worked on; the id of the process that does."""
    until(lambda: queue.look(kind, key).progress.text == "holding")
    (process,) = (one for one in queue.processes() if one.entry is not None and one.entry.key == key)
    return process.pid


def on_disk() -> str:
    return "".join(path.read_text(errors="replace") for path in home().rglob("*") if path.is_file())


def test_same_content_is_computed_once_and_leaves_nothing_of_the_question():
    first = ask(LIGHT, {"number": 1, "text": "a private sentence"}, X)
    assert first.under_way
    done = settled(LIGHT, first.key)
    assert done.status == "done" and done.result is not None
    assert done.result.facts["seen"] == [1] and done.result.arrays["doubled"].tolist() == [0, 2, 4]
    again = ask(LIGHT, {"number": 1, "text": "a private sentence"}, {"x": X["x"].copy()})
    assert again.status == "done" and again.result is not None and again.result.facts == done.result.facts
    assert len({queue.content_key(LIGHT, {"a": 1}, inputs) for inputs in (None, X, {"x": X["x"] + 1})}) == 3
    until(lambda: not queue.processes())  # it stays for no one
    assert "a private sentence" not in on_disk() and not list((STORE.root / "inputs").iterdir())


def test_killed_worker_is_noticed_and_its_job_can_be_retried(busy):
    request = {"while": str(busy)}
    queue.start(LIGHT, "k", request)
    psutil.Process(running(LIGHT, "k")).kill()
    until(lambda: queue.look(LIGHT, "k").status == "lost")
    lost = queue.start(LIGHT, "k", request, retry=False)  # a page that only looks again: it might be killed again
    assert lost.status == "lost" and "died" in lost.message and "Retry" in lost.advice
    until(lambda: not queue.processes())
    busy.unlink()
    assert queue.retry(LIGHT, "k").under_way
    assert settled(LIGHT, "k").status == "done"


def test_stop_ends_what_the_job_started_and_forgets_it(busy, tmp_path):
    children = tmp_path / "children"
    queue.start(LIGHT, "k", {"while": str(busy), "children": str(children)}, X)
    queue.start(LIGHT, "next", {})
    pid = running(LIGHT, "k")
    until(lambda: children.exists() and children.read_text())
    queue.stop(LIGHT, "k")
    assert gone(pid) and gone(int(children.read_text())), "the child had left the process group"
    assert queue.look(LIGHT, "k").status == "none" and not STORE.inputs_of("k").exists()
    assert settled(LIGHT, "next").status == "done", "what waited behind it has its turn"


def test_lane_has_a_limit_and_every_waiter_is_shown(busy):
    queue.start(LIGHT, "first", {"while": str(busy)})
    running(LIGHT, "first")
    queue.start(LIGHT, "second", {})
    time.sleep(0.01)
    queue.start(OTHER, "third", {})
    queue.start(WARM, "elsewhere", {})
    assert settled(WARM, "elsewhere").status == "done", "another pool is not held up"
    second, third = queue.look(LIGHT, "second"), queue.look(OTHER, "third")
    assert (second.status, second.ahead, third.status, third.ahead) == ("waiting", 1, "waiting", 2)
    busy.unlink()
    second, third = settled(LIGHT, "second"), settled(OTHER, "third")
    assert second.result is not None and third.result is not None
    assert second.result.folder.stat().st_ctime_ns < third.result.folder.stat().st_ctime_ns


def test_warm_process_keeps_its_data_and_exits_when_memory_is_short():
    for number in range(2):
        queue.start(WARM, f"k{number}", {"number": number})
        settled(WARM, f"k{number}")
    result = STORE.find("k1")
    assert result is not None and result.facts["seen"] == [0, 1], "the second in the process of the first"
    until(lambda: [process.entry for process in queue.processes()] == [None])
    hungry = replace(LIGHT, name="hungry", memory=2**60)
    queue.start(hungry, "k3", {})
    until(lambda: [process.kind.name for process in queue.processes()] == ["hungry"])  # one, however short memory is
    kinds.KINDS.pop("hungry")


@pytest.mark.parametrize(
    ("does", "message", "field", "advice"),
    [
        ("reject", "rows: must be at least 2 (got 1)", "rows", "Take more."),
        ("break", "the computation failed with RuntimeError: a bug", None, "See the log below."),
        ("run out of memory", "the machine ran out of memory", "rows", "Take fewer."),
    ],
)
def test_failure_is_reported_in_the_users_terms(does, message, field, advice):
    state = work_here(LIGHT, "k", {"does": does})
    assert (state.status, state.message, state.field, state.advice) == ("failed", message, field, advice)
    queue.stop(LIGHT, "k")
    assert queue.look(LIGHT, "k").status == "none"


def test_failure_is_retried_by_a_later_request_and_a_bug_costs_the_process(tmp_path, monkeypatch):
    request = {"does": "fail once", "flag": str(tmp_path / "flag")}
    key = ask(WARM, request).key
    failed = settled(WARM, key)
    assert (failed.status, failed.message) == ("failed", "not yet")
    assert ask(WARM, request).status == "failed", "not at each look"
    (process,) = queue.processes()
    monkeypatch.setattr(queue, "RETRY_SECONDS", 0.0)
    assert not ask(WARM, request).in_trouble and queue.processes() == [process]  # it may be done already
    assert settled(WARM, key).status == "done"
    queue.start(WARM, "bug", {"does": "break"})
    bug = settled(WARM, "bug")
    assert bug.log is not None and "Traceback" in bug.log.read_text()
    until(lambda: not queue.processes())


def test_job_ends_with_its_app(busy, tmp_path):
    code = (
        "import sys, time; from isoviz.jobs import queue; from tests.jobs.light import LIGHT\n"
        "queue.start(LIGHT, 'k', {'while': sys.argv[1], 'children': sys.argv[2]}); time.sleep(600)"
    )
    children = tmp_path / "children"
    app = subprocess.Popen([sys.executable, "-c", code, str(busy), str(children)])
    until(lambda: children.exists() and children.read_text())
    family = psutil.Process(app.pid).children(recursive=True)
    app.kill()
    app.wait()
    assert len(family) == 2
    until(lambda: all(gone(process.pid) for process in family))


def test_process_that_cannot_begin_leaves_its_reason_and_is_not_started_for_ever():
    queue.start(BROKEN, "k", {})
    lost = settled(BROKEN, "k")
    assert lost.status == "lost" and lost.log is not None
    assert "No module named 'tests.jobs.no_such_room'" in lost.log.read_text()
    until(lambda: not queue.processes())
