"""Records how long the "60-second demo" takes on this machine: `python -m factory.record_demo`.

The preset's runs go the way they go from the Train page: a runner whose spare has had time to import, all runs created at once; the
clock stops when the last has ended. Writes `isoviz/demo/demo.json`, from which the home page takes what it promises. Where other work
has the processors meanwhile, nothing is written. Needs Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks._report import processor
from isoviz.demo import DEMO_RECORD
from isoviz.jobs.processes import share_cores
from isoviz.runs import planning
from isoviz.runs.runner import Runner
from isoviz.runs.store import RunRow, Store
from isoviz.tasks import get

MOST_OTHERS = 0.1
"""Maximum share of processor time for other processes."""
READY_SECONDS = 20.0


def measure(store: Store, plan: dict[str, Any]) -> dict[str, Any]:
    """Seconds from Launch to the end of the last run, each run's time by phase, and the load of the machine."""
    runner = Runner(store)
    runner.start()
    runner.expect()
    try:
        time.sleep(READY_SECONDS)
        began, others = time.time(), Others()
        ids = store.create(planning.expand(**plan))
        while any(store.get(run_id).ended is None for run_id in ids):
            others.look()
            time.sleep(0.2)
        rows = [store.get(run_id) for run_id in ids]
    finally:
        runner.close()
    ended = [row.ended for row in rows if row.ended is not None]
    return {
        "seconds": round(max(ended) - began, 1),
        "others": round(others.share(), 3),
        "runs": [_run(row) for row in rows],
    }


class Others:
    """Measures the share of processor time used by other processes or by other guests of the host."""

    def __init__(self) -> None:
        self._us = psutil.Process()
        self._ours: dict[tuple[int, str], int] = {}
        self._first = (self.look(), _busy(), time.monotonic())

    def look(self) -> float:
        """CPU seconds of our threads so far; a thread that has ended counts with its last value."""
        for process in [self._us, *self._us.children(recursive=True)]:
            for thread in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):
                    self._ours[process.pid, thread.parent.name] = int(thread.read_text().split()[0])
        return sum(self._ours.values()) / 1e9

    def share(self) -> float:
        """Their share of total processor time since the start."""
        ours, busy, began = self._first
        others = (_busy() - busy) - (self.look() - ours)
        return max(0.0, others) / ((time.monotonic() - began) * (os.cpu_count() or 1))


def _busy() -> float:
    """Busy seconds of all processors since boot, including stolen time."""
    times = psutil.cpu_times()
    return (
        sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
    )  # guest time is already included in user and nice


def _run(row: RunRow) -> dict[str, Any]:
    result = row.result
    if result is None or row.started is None or row.ended is None:
        raise SystemExit(f"record_demo: run {row.id} is {row.status}: {row.error}")
    return {
        "method": row.config.method,
        "seconds": round(row.ended - row.started, 1),
        **{name: round(value, 1) for name, value in result.timing.items() if value is not None},
        "score": round(result.metrics[get(row.config.task).primary] or 0.0, 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m factory.record_demo", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--out", type=Path, default=DEMO_RECORD, help="where to write (default: the package's own record)"
    )
    options = parser.parse_args()
    share_cores(os.environ)
    preset = next(preset for preset in planning.PRESETS if preset.slug == "demo")
    times = []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ["ISOVIZ_HOME"] = folder  # no cached tokenised rows
            store = Store(folder)
            times.append(measure(store, dict(preset.plan)))
            store.close()
        print(json.dumps(times[-1]), file=sys.stderr, flush=True)
    quiet = [time for time in times if time["others"] <= MOST_OTHERS]
    if not quiet:
        print(
            f"record_demo: other processes had more than {MOST_OTHERS:.0%} of the processors' time; nothing is written",
            file=sys.stderr,
        )
        return 1
    median = statistics.median_low(run["seconds"] for run in quiet)
    record = {
        "plan": preset.plan,
        "seconds": median,
        "repeats": [run["seconds"] for run in quiet],
        **{
            name: value
            for name, value in next(run for run in quiet if run["seconds"] == median).items()
            if name != "seconds"
        },
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "versions": {name: version(name) for name in ("torch", "transformers", "accelerate")},
        "date": date.today().isoformat(),
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
