"""Records how long the "60-second demo" takes on this machine: `python -m factory.record_demo`.

The preset's runs go the way they go from the Train page: a runner whose spare has had time to import, all runs created at once; the
clock stops when the last has ended. Writes `isoviz/demo/demo.json`, from which the home page takes what it promises. A machine that does
other work meanwhile is no measure: then nothing is written.
"""

from __future__ import annotations

import argparse
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

BUSY = 0.1
"""Share of the cores' time that others may take."""
READY_SECONDS = 20.0


def measure(store: Store, plan: dict[str, Any]) -> dict[str, Any]:
    """Seconds from pressing Launch until the last run has ended, what each run's went to, and how busy the machine was."""
    runner = Runner(store)
    runner.start()
    runner.expect()
    try:
        time.sleep(READY_SECONDS)
        us = psutil.Process()
        before, elsewhere = time.time(), Elsewhere(us)
        ids = store.create(planning.expand(**plan))
        while any(store.get(run_id).ended is None for run_id in ids):
            elsewhere.look()
            time.sleep(0.2)
        rows = [store.get(run_id) for run_id in ids]
    finally:
        runner.close()
    ended = [row.ended for row in rows if row.ended is not None]
    return {
        "seconds": round(max(ended) - before, 1),
        "busy_elsewhere": round(elsewhere.share(), 3),
        "runs": [_run(row) for row in rows],
    }


class Elsewhere:
    """Processor time that processes other than ours take."""

    def __init__(self, us: psutil.Process) -> None:
        self._us = us
        self._ours: dict[int, float] = {}
        self._first = self._own()
        self._began = psutil.cpu_times()
        self._wall = time.monotonic()

    def look(self) -> None:
        """Note what ours have taken so far: a process that has ended can no longer be asked."""
        self._own()

    def share(self) -> float:
        """Of all cores' time since the beginning."""
        now = psutil.cpu_times()
        busy = sum(getattr(now, name) - getattr(self._began, name) for name in ("user", "nice", "system"))
        own = self._own() - self._first
        return max(0.0, busy - own) / ((time.monotonic() - self._wall) * (os.cpu_count() or 1))

    def _own(self) -> float:
        for process in [self._us, *self._us.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            self._ours[process.pid] = times.user + times.system
        return sum(self._ours.values())


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
    preset = next(one for one in planning.PRESETS if one.slug == "demo")
    times = []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ["ISOVIZ_HOME"] = folder  # nothing that was tokenised before
            store = Store(folder)
            times.append(measure(store, dict(preset.plan)))
            store.close()
        print(json.dumps(times[-1]), file=sys.stderr, flush=True)
    quiet = [one for one in times if one["busy_elsewhere"] <= BUSY]
    if not quiet:
        print(f"record_demo: others took more than {BUSY:.0%} of the cores' time; nothing is written", file=sys.stderr)
        return 1
    median = statistics.median_low(one["seconds"] for one in quiet)
    record = {
        "plan": preset.plan,
        "seconds": median,
        "repeats": [one["seconds"] for one in quiet],
        **{
            name: value
            for name, value in next(one for one in quiet if one["seconds"] == median).items()
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
