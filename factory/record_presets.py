"""Runs the bundled presets and records them: `python -m factory.record_presets [demo] [presets]`.

- `demo`: how long the "60-second demo" takes on this machine. Its runs go the way they go from the Train page: a runner whose spare has
  had time to import, all runs created at once; the clock stops when the last has ended. Writes `isoviz/demo/demo.json`, from which the
  home page takes what it promises. Where other work has the processors before, nothing is written.
- `presets`: the results of every preset. Writes `isoviz/demo/presets.json`: each preset's plan; of each run its setting, seed, primary
  metric, isotropy, and why it collapsed if it did; and what simple approaches reach. Tests hold that the plan is still the recorded one,
  that the baseline beats the simple approaches in every seed, and that Results answers the question in the title.
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
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks._report import processor
from isoviz.demo import DEMO_RECORD, PRESETS_RECORD
from isoviz.jobs.processes import share_cores
from isoviz.runs import planning
from isoviz.runs.runner import Runner
from isoviz.runs.store import RunRow, Store
from isoviz.tasks import get

MOST_OTHERS = 0.1
"""Maximum share of processor time for other processes, before the runner starts to import."""
LISTENING_SECONDS = 5.0
READY_SECONDS = 20.0
WHAT = ("demo", "presets")
ISOTROPY = ("isoscore", "isoscore_star")


@contextlib.contextmanager
def running(folder: str) -> Iterator[tuple[Store, Runner]]:
    """A store in a folder, which is also the home (so that no tokenised rows are cached), and its runner."""
    os.environ["ISOVIZ_HOME"] = folder
    store = Store(folder)
    runner = Runner(store)
    runner.start()
    try:
        yield store, runner
    finally:
        runner.close()
        store.close()


def write(path: Path, record: dict[str, Any]) -> None:
    """The record with the machine, the versions and the date."""
    machine = {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "versions": {name: version(name) for name in ("torch", "transformers", "accelerate")},
        "date": date.today().isoformat(),
    }
    path.write_text(json.dumps({**record, **machine}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- the demo


def record_demo(repeats: int) -> int:
    """Time the demo and write its record; 1 if the machine was never quiet enough."""
    preset = next(preset for preset in planning.PRESETS if preset.slug == "demo")
    times = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, running(folder) as (store, runner):
            times.append(measure(store, runner, dict(preset.plan)))
        print(json.dumps(times[-1]), file=sys.stderr, flush=True)
    quiet = [time for time in times if time["others"] <= MOST_OTHERS]
    if not quiet:
        print(
            f"other processes had more than {MOST_OTHERS:.0%} of the processors' time; nothing is written",
            file=sys.stderr,
        )
        return 1
    seconds = [run["seconds"] for run in quiet]
    middle = next(run for run in quiet if run["seconds"] == statistics.median_low(seconds))
    write(DEMO_RECORD, {"plan": preset.plan, "seconds": middle["seconds"], "repeats": seconds, **middle})
    return 0


def measure(store: Store, runner: Runner, plan: dict[str, Any]) -> dict[str, Any]:
    """Seconds from Launch to the end of the last run, each run's time by phase, and how busy the machine was before."""
    others = psutil.cpu_percent(interval=LISTENING_SECONDS) / 100
    runner.expect()
    time.sleep(READY_SECONDS)
    began = time.time()
    ids = store.create(planning.expand(**plan))
    while any(store.get(run_id).ended is None for run_id in ids):
        time.sleep(0.2)
    rows = [store.get(run_id) for run_id in ids]
    ended = [row.ended for row in rows if row.ended is not None]
    return {
        "seconds": round(max(ended) - began, 1),
        "others": round(others, 3),
        "runs": [_run(row) for row in rows],
    }


def _run(row: RunRow) -> dict[str, Any]:
    result = row.result
    if result is None or row.started is None or row.ended is None:
        raise SystemExit(f"run {row.id} is {row.status}: {row.error}")
    return {
        "method": row.config.method,
        "seconds": round(row.ended - row.started, 1),
        **{name: round(value, 1) for name, value in result.timing.items() if value is not None},
        "score": round(result.metrics[get(row.config.task).primary] or 0.0, 3),
    }


# ---------------------------------------------------------------------------------------------------- all presets


def results(store: Store, preset: planning.Preset) -> dict[str, Any]:
    """Run a preset to its end; returns its plan, the scores of simple approaches, and each run's report."""
    ids = store.create(planning.expand(**preset.plan), group=preset.title)
    while any(store.get(run_id).ended is None for run_id in ids):
        time.sleep(0.5)
    runs: list[dict[str, Any]] = []
    simple: dict[str, float] = {}
    for run_id in ids:
        row = store.get(run_id)
        if row.result is None:
            raise SystemExit(f"run {run_id} of {preset.slug} is {row.status}: {row.error}")
        config = row.config
        run = {"method": config.method, "params": dict(config.params), "seed": config.seed}
        score = row.result.metrics[get(config.task).primary]
        isotropy = {slug: round(row.result.isotropy.number(slug) or 0.0, 4) for slug in ISOTROPY}
        runs.append({**run, "score": round(score or 0.0, 4), **isotropy, "collapsed": row.collapsed})
        baselines = store.summary(run_id).baselines
        simple |= {name: round(value, 4) for name, value in baselines.items() if value is not None}
    return {"plan": preset.plan, "simple": simple, "runs": runs}


def main() -> int:
    """1 if something was not recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"{', '.join(WHAT)} (default: both)")
    parser.add_argument("--repeats", type=int, default=3, help="of the demo")
    parser.add_argument("--store", help="keep the presets' runs in this folder")
    options = parser.parse_args()
    if unknown := set(options.what) - set(WHAT):
        parser.error(f"unknown: {', '.join(sorted(unknown))} (allowed: {', '.join(WHAT)})")
    chosen = options.what or WHAT
    share_cores(os.environ)
    if "presets" in chosen:
        scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with scratch as temporary, running(options.store or temporary) as (store, _):
            write(PRESETS_RECORD, {"presets": {one.slug: results(store, one) for one in planning.PRESETS}})
    return record_demo(options.repeats) if "demo" in chosen else 0


if __name__ == "__main__":
    sys.exit(main())
