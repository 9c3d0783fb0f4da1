"""Kinds of jobs without torch: each way in which a job can go, on request."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from isoviz.errors import InputError
from isoviz.jobs.kinds import Job, JobKind, Pool
from isoviz.jobs.results import ResultStore

STORE = ResultStore("light", most=4)
POOL = Pool("light")


def work(job: Job) -> None:
    """Do what the request says; wait while the file named `while` exists."""
    request = job.request
    print(f"done by {os.getpid()}", flush=True)
    job.report(3, 10, "holding")
    if "children" in request:
        deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        apart = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
        Path(request["children"]).write_text(f"{apart.pid}")
    while Path(request.get("while", "/nowhere")).exists():
        time.sleep(0.02)
    match request.get("does"):
        case "reject":
            raise InputError("rows: must be at least 2 (got 1)", field="rows", advice="Take more.")
        case "break":
            raise RuntimeError("a bug\nwith details")
        case "run out of memory":
            raise MemoryError
        case "fail once":
            flag = Path(request["flag"])
            if not flag.exists():
                flag.touch()
                raise InputError("not yet")
    doubled = job.inputs().get("x", np.arange(2.0)) * 2
    seen = job.memory.get("seen", list)
    seen.append(request.get("number"))
    job.publish({"pid": os.getpid(), "seen": list(seen)}, {"doubled": doubled})


PREPARE = f"{__name__}:ready"


def kind(name: str, pool: Pool, **more: Any) -> JobKind:
    return JobKind(
        **{"name": name, "room": __name__, "work": work, "results": STORE, "pool": pool, "memory": 0, **more}
    )


LIGHT = kind("light", POOL, prepare=PREPARE, memory_field="rows", memory_advice="Take fewer.")
WARM = kind("warm", Pool("warm"), warm_seconds=600.0)
OTHER = kind("other", POOL)
BROKEN = kind("broken", Pool("broken"), room="tests.jobs.no_such_room")


def ready() -> None:
    """A substitute for the imports of a prepared worker: part of its memory is temporary."""
    bytearray(PEAK)
    print("ready", flush=True)


PEAK = 512 * 2**20


def start_thread() -> None:
    """A substitute for a library that starts a thread on import."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def waits() -> int:
    time.sleep(600)
    return 0


def ends_with_three() -> int:
    return 3


def peak_is_low() -> int:
    """0 if this process has never held as much memory as `ready` did."""
    import resource

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > PEAK)
