"""A substitute for `isoviz.training.loop.train`: no torch, and every kind of failure on request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import isoviz.runs.execution  # noqa: F401  (a spare has it ready)
from isoviz.config import RunConfig
from isoviz.errors import DataError, DivergedError
from isoviz.events import Checkpointed, Entered, Event, Finished, Resumed, Stepped, Stopped

FAKE = "tests.runs.fake_training"
SPEC = f"{FAKE}:train"

# imported by a worker, whose next act is to wait for its order: its log tells those who wait for that
if "--prepare" in sys.argv:
    print(f"spare {os.getpid()} is ready", flush=True)


def train(
    config: RunConfig,
    emit: Callable[[Event], None],
    should_stop: Callable[[], bool],
    run_dir: Path,
    resume: bool = False,
) -> None:
    """Do what `config.params["does"]` says; `seconds` is how long a normal run takes."""
    with (run_dir / "ran").open("a") as file:
        file.write(f"{os.getpid()}\n")
    emit(Entered(phase="training"))
    if resume:
        emit(Resumed(step=2, epoch=1))
    step(emit, 1)
    match config.params["does"]:
        case "finish":
            deadline = time.monotonic() + float(config.params.get("seconds", 0.0))
            while time.monotonic() < deadline:
                time.sleep(0.02)
                if should_stop():
                    return stop(emit)
        case "finish when told":
            while not (run_dir / "finish").exists():
                time.sleep(0.02)
                if should_stop():
                    return stop(emit)
        case "raise":
            raise ValueError("the first line\nand a second")
        case "diverge":
            raise DivergedError("istar", 17, "Lower the learning rate.")
        case "reject":
            raise DataError("column 'label' has one class", advice="Add rows of another class.")
        case "run out of memory":
            raise MemoryError("cannot allocate 8 GB")
        case "return":
            return None
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "be loud":
            for _ in range(1024):
                print("x" * 1023)
                print("y" * 1023, file=sys.stderr)
        case "save slowly":
            while not should_stop():
                time.sleep(0.02)
            emit(Entered(phase="saving"))
            while not (run_dir / "finish").exists():
                time.sleep(0.02)
            return stop(emit)
        case "step slowly":
            step(emit, 2, seconds=600.0)
            while not (run_dir / "finish").exists():
                time.sleep(0.02)
            return stop(emit)
        case "ignore everything":
            ignore_everything(run_dir, emit)
        case "linger":
            threading.Thread(target=time.sleep, args=(600,)).start()
    emit(Finished(metrics={"accuracy": 1.0}, isotropy={}, timing={}))
    return None


def step(emit: Callable[[Event], None], number: int, seconds: float | None = None) -> None:
    emit(
        Stepped(
            step=number,
            epoch=0.0,
            losses={"total": 1.0},
            learning_rate=0.1,
            samples_per_second=1.0,
            eta_seconds=0.0,
            step_seconds=seconds,
        )
    )


def stop(emit: Callable[[Event], None]) -> None:
    emit(Checkpointed(step=5, epoch=1, path="checkpoints/step-0000005"))
    emit(Stopped(step=5))


def ignore_everything(run_dir: Path, emit: Callable[[Event], None]) -> None:
    """Deaf to stop and to SIGTERM, with a child in the group and a grandchild that left it."""
    emit(Checkpointed(step=3, epoch=1, path="checkpoints/step-0000003"))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    busy = (
        "import pathlib, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path(sys.argv[1]).touch()\nwhile True: time.sleep(0.01)"
    )
    deaf = [run_dir / f"deaf-{number}" for number in range(2)]
    children = [
        subprocess.Popen([sys.executable, "-c", busy, str(path)], start_new_session=apart)
        for path, apart in zip(deaf, (False, True), strict=True)
    ]
    while not all(path.exists() for path in deaf):
        time.sleep(0.01)
    (run_dir / "pids.partial").write_text(" ".join(str(pid) for pid in (os.getpid(), *(c.pid for c in children))))
    (run_dir / "pids.partial").rename(run_dir / "pids")
    while True:
        sum(range(10_000))
