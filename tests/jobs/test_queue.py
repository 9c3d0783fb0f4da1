"""Jobs with real processes: one per key, watched, stopped and retried; what may run at once, and who goes first."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from isoviz.home import home
from isoviz.jobs import kinds, queue, scheduling
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.processes import is_alive
from isoviz.jobs.progress import write_json
from isoviz.jobs.queue import JobState
from tests.jobs.conftest import settled
from tests.jobs.here import end_all, lane_taken, write_job
from tests.jobs.light import BROKEN, LANE, LIGHT, PATIENT, STORE, WARM
from tests.runs.observing import until

X = {"x": np.arange(3.0)}


def running(kind: JobKind, key: str) -> int:
    """Wait until the job is worked on; the id of the process that does."""
    until(lambda: queue.look(kind, key).status == "running")
    (entry,) = (entry for entry in scheduling.processes() if entry.job == key)
    return entry.pid


def on_disk() -> str:
    return "".join(path.read_text(errors="replace") for path in home().rglob("*") if path.is_file())


def test_same_content_is_computed_once_and_leaves_nothing_of_the_question() -> None:
    first = queue.ask(LIGHT, {"number": 1, "text": "a private sentence"}, X)
    assert first.under_way
    done = settled(LIGHT, first.key)
    assert done.status == "done" and done.result is not None
    assert done.result.facts["seen"] == [1] and done.result.arrays["doubled"].tolist() == [0, 2, 4]
    again = queue.ask(LIGHT, {"number": 1, "text": "a private sentence"}, {"x": X["x"].copy()})
    assert again.status == "done" and again.result is not None and again.result.facts == done.result.facts
    assert len({queue.content_key(LIGHT, {"a": 1}, inputs) for inputs in (None, X, {"x": X["x"] + 1})}) == 3
    until(lambda: "a private sentence" not in on_disk())
    until(lambda: not scheduling.processes())  # it stays for no one


def test_sessions_that_ask_at_the_same_time_share_one_process(busy: Path) -> None:
    states: list[JobState] = []

    def ask() -> None:
        states.append(queue.start(LIGHT, "k", {"while": str(busy)}))

    sessions = [threading.Thread(target=ask) for _ in range(4)]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    assert all(state.under_way for state in states)
    pid = running(LIGHT, "k")
    state = queue.look(LIGHT, "k")
    until(lambda: queue.look(LIGHT, "k").progress.text == "holding")
    assert queue.look(LIGHT, "k").progress.fraction == 0.3 and state.log is not None
    assert state.log.read_text() == f"done by {pid}\n" and len(scheduling.processes()) == 1
    busy.unlink()
    assert settled(LIGHT, "k").status == "done"


def test_what_another_version_left_is_in_nobodys_way() -> None:
    folder = home() / "jobs" / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "1.json", {"pid": 1, "starter": 2})
    left = write_job(LIGHT, "left", {"number": 1})
    write_json(left / scheduling.REQUEST, {"kind": LIGHT.name, "request": {"number": 1}})
    queue.start(LIGHT, "k", {"number": 2})
    assert settled(LIGHT, "k").status == "done"
    scheduling.adopt()
    scheduling.dispatch()
    assert settled(LIGHT, "left").status == "done"


def test_killed_worker_is_noticed_and_its_job_can_be_retried(busy: Path) -> None:
    request = {"while": str(busy)}
    queue.start(LIGHT, "k", request)
    psutil.Process(running(LIGHT, "k")).kill()
    until(lambda: queue.look(LIGHT, "k").status == "lost")
    lost = queue.start(LIGHT, "k", request, retry=False)  # a page that only looks again: it might be killed again
    assert lost.status == "lost" and "died" in lost.message and "Retry" in lost.advice
    assert not any(entry.lives for entry in scheduling.processes())
    busy.unlink()
    assert queue.retry(LIGHT, "k").under_way
    assert settled(LIGHT, "k").status == "done"


def test_stop_ends_what_the_job_started_and_forgets_it(busy: Path, tmp_path: Path) -> None:
    children = tmp_path / "children"
    queue.start(LIGHT, "k", {"while": str(busy), "children": str(children)})
    queue.start(LIGHT, "next", {})
    pid = running(LIGHT, "k")
    until(lambda: children.exists() and children.read_text())
    queue.stop(LIGHT, "k")
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert not psutil.pid_exists(int(children.read_text())), "it had left the process group"
    assert queue.look(LIGHT, "k").status == "none" and not STORE.job_folder("k").exists()
    assert settled(LIGHT, "next").status == "done", "what waited behind it has its turn"


def test_lane_has_a_limit_urgent_jobs_go_first_and_every_waiter_is_shown(busy: Path) -> None:
    queue.start(LIGHT, "first", {"while": str(busy)})
    running(LIGHT, "first")
    queue.start(PATIENT, "patient", {})
    time.sleep(0.01)
    queue.start(LIGHT, "urgent", {})
    queue.start(WARM, "elsewhere", {})
    assert settled(WARM, "elsewhere").status == "done", "another lane is not held up"
    patient, urgent = queue.look(PATIENT, "patient"), queue.look(LIGHT, "urgent")
    assert (patient.status, patient.ahead, urgent.status, urgent.ahead) == ("waiting", 2, "waiting", 1)
    assert scheduling.waiting_above(kinds.QUEUED) and not scheduling.waiting_above(kinds.PERSON)
    assert [entry.job for entry in scheduling.processes() if entry.lane == "light"] == ["first"]
    busy.unlink()
    urgent, patient = settled(LIGHT, "urgent"), settled(PATIENT, "patient")
    assert urgent.result is not None and patient.result is not None
    assert urgent.result.folder.stat().st_ctime_ns < patient.result.folder.stat().st_ctime_ns


def test_warm_process_keeps_its_data_and_exits_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        queue.start(WARM, f"k{number}", {"number": number})
        settled(WARM, f"k{number}")
    result = STORE.find("k1")
    assert result is not None and result.facts["seen"] == [0, 1], "the second in the process of the first"
    until(lambda: [entry.job for entry in scheduling.processes()] == [None])
    pid = result.facts["pid"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # what it would find is no longer what a new process would
    queue.start(WARM, "k2", {})
    done = settled(WARM, "k2").result
    assert done is not None and done.facts["pid"] != pid
    hungry = replace(LIGHT, name="hungry", memory=2**60)
    queue.start(hungry, "k3", {})
    assert not any(entry.kind == "warm" for entry in scheduling.processes()), "it makes room"
    assert [entry.kind for entry in scheduling.processes()] == ["hungry"], "one is started however short memory is"
    end_all()
    kinds.KINDS.pop("hungry")


def test_failure_says_why_and_is_retried_by_a_later_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"does": "fail once", "flag": str(tmp_path / "flag")}
    key = queue.ask(LIGHT, request).key
    failed = settled(LIGHT, key)
    assert (failed.status, failed.message) == ("failed", "not yet")
    assert queue.ask(LIGHT, request).status == "failed", "not at each look"
    monkeypatch.setattr(queue, "RETRY_SECONDS", 0.0)
    assert queue.ask(LIGHT, request).under_way
    assert settled(LIGHT, key).status == "done"


def test_job_ends_with_the_last_app_and_the_next_app_does_it(busy: Path) -> None:
    code = (
        "import json, sys, time; from isoviz.jobs import queue; from tests.jobs.light import LIGHT\n"
        "queue.start(LIGHT, 'k', {'while': sys.argv[1]}); queue.start(LIGHT, 'behind', {})\n"
        "print('asked', flush=True); time.sleep(600)"
    )
    app = subprocess.Popen([sys.executable, "-c", code, str(busy)], stdout=subprocess.PIPE, text=True)
    assert app.stdout is not None and app.stdout.readline() == "asked\n"
    pid = running(LIGHT, "k")
    started = psutil.Process(pid).create_time()
    app.kill()
    app.communicate()
    until(lambda: not is_alive(pid, started))
    assert queue.look(LIGHT, "k").status == "waiting" and queue.look(LIGHT, "behind").status == "waiting"
    assert not scheduling.processes()
    busy.unlink()
    done, behind = settled(LIGHT, "k").result, settled(LIGHT, "behind").result
    assert done is not None and behind is not None
    assert done.facts["pid"] == behind.facts["pid"] != pid


def test_job_continues_while_another_app_lives(busy: Path) -> None:
    code = "import time; from isoviz.jobs import scheduling; scheduling.register_app(); print('on', flush=True); time.sleep(600)"
    asking = "from isoviz.jobs import queue; from tests.jobs.light import LIGHT; queue.start(LIGHT, 'k', {'while': %r})"
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "on\n"
    subprocess.run([sys.executable, "-c", asking % str(busy)], check=True)
    pid = running(LIGHT, "k")
    started = psutil.Process(pid).create_time()
    time.sleep(1.5)  # it looks for apps once a second
    assert is_alive(pid, started)
    other.kill()
    other.communicate()
    until(lambda: not is_alive(pid, started))
    assert queue.look(LIGHT, "k").status == "waiting"


def test_process_that_cannot_begin_leaves_its_reason_and_is_not_started_for_ever() -> None:
    queue.start(BROKEN, "k", {})
    lost = settled(BROKEN, "k")
    assert lost.status == "lost" and lost.log is not None
    assert "No module named 'tests.jobs.no_such_room'" in lost.log.read_text()
    assert not scheduling.processes()


def test_process_with_the_same_number_is_not_the_worker(busy: Path) -> None:
    queue.start(LIGHT, "k", {"while": str(busy)})
    running(LIGHT, "k")
    path = STORE.job_folder("k") / scheduling.PROCESS
    process = json.loads(path.read_text())
    assert is_alive(process["pid"], process["started"])
    write_json(path, {**process, "started": process["started"] - 100})
    assert queue.look(LIGHT, "k").status == "lost"


def test_job_requested_elsewhere_waits_for_its_own_app_or_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with lane_taken(LANE):
        queue.start(LIGHT, "k", {})
        requested_at = (STORE.job_folder("k") / scheduling.REQUEST).stat().st_mtime_ns
        monkeypatch.setenv("ISOVIZ_STORE", "postgresql://somebody:password@server/isoviz")
    scheduling.dispatch()
    assert not scheduling.processes() and queue.look(LIGHT, "k").status == "waiting", "it would look in another store"
    scheduling.adopt()
    assert (STORE.job_folder("k") / scheduling.REQUEST).stat().st_mtime_ns == requested_at
    assert settled(LIGHT, "k").status == "done"
    queue.start(LIGHT, "l", {})
    assert "password" not in on_disk()
