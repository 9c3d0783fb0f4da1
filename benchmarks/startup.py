"""How soon a queued run trains: taken by a waiting spare worker, against a fresh process of the command line.

    python benchmarks/startup.py [--repeats 3]

Both train the same tiny run. Seconds from the claim (for the command line: from starting the process) until everything is
loaded and training begins (`started`; epoch 0 is evaluated and measured first), and until the first optimiser step. Bars:
the spare's `started` within 1 s, and at least three times sooner than the command line's. Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from isoviz.runs import planning
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

ROOT = Path(__file__).resolve().parent.parent
TASK = "demo/acceptability"


@dataclass(frozen=True)
class Slot:
    """The CPU, without asking torch for the devices."""

    name: str = "cpu"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = Store(folder)
        spare = [with_spare(store) for _ in range(repeats)]
        fresh = [with_command(store) for _ in range(repeats)]
        store.close()
    begun = [statistics.median(times[0] for times in way) for way in (spare, fresh)]
    step = [statistics.median(times[1] for times in way) for way in (spare, fresh)]
    print(f"until training begins: spare {begun[0]:.2f} s, command line {begun[1]:.2f} s ({begun[1] / begun[0]:.1f} x)")
    print(f"until the first step:  spare {step[0]:.2f} s, command line {step[1]:.2f} s ({step[1] / step[0]:.1f} x)")
    return 0 if begun[0] <= 1 and begun[1] >= 3 * begun[0] else 1


def with_spare(store: Store) -> tuple[float, float]:
    """One run by a runner whose spare has had time to import everything."""
    runner = Runner(store, [Slot()])
    runner.start()
    runner.expect()  # as the Train page does when it is opened
    try:
        time.sleep(20)
        (run_id,) = store.create(
            planning.expand(
                ["demo/tiny-bert"], [TASK], [("baseline", {})], [0], epochs=1, max_train=64, max_eval=64, threads=1
            )
        )
        wait(store, run_id)
    finally:
        runner.close()
    started = store.get(run_id).started
    assert started is not None
    return moments(store, run_id, started)


def with_command(store: Store) -> tuple[float, float]:
    """The same run by `python -m isoviz train`."""
    command = [
        sys.executable,
        "-m",
        "isoviz",
        "train",
        "--model",
        "demo/tiny-bert",
        "--task",
        TASK,
        "--method",
        "baseline",
    ]
    options = ["--epochs", "1", "--max-train", "64", "--max-eval", "64", "--store", store.url]
    begin = time.time()
    subprocess.run(
        [*command, *options], check=True, capture_output=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return moments(store, store.list(limit=1)[0].id, begin)


def wait(store: Store, run_id: str) -> None:
    while store.get(run_id).ended is None:
        time.sleep(0.1)
    assert store.get(run_id).status == "finished", store.get(run_id).error


def moments(store: Store, run_id: str, begin: float) -> tuple[float, float]:
    """Seconds from `begin` to `started` and to the first step."""
    first: dict[str, float] = {}
    for _, event in store.events(run_id):
        first.setdefault(event["kind"], event["time"] - begin)
    return first["started"], first["stepped"]


if __name__ == "__main__":
    sys.exit(main())
