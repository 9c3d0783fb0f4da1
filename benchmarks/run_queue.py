"""Short runs from the queue, against as many fresh processes of the command line: start-up and total time.

    python benchmarks/run_queue.py [--runs 20] [--out docs]

Both train the same tiny runs, one after the other, with one thread. Start-up is the time from the claim (for the command line:
from the start of the process) until everything is loaded and training begins (`started`), and until the first optimiser step; epoch 0
is evaluated and measured between the two. Bars: in the median, a queued run takes its first step within 1 s, and at least three times
sooner than the command line's. Exit code 1 if one is missed.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass

from _report import Table, finish, machine, options, python

from isoviz.runs import planning
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

MODEL, TASK = "demo/tiny-bert", "demo/acceptability"
PREPARED_SECONDS = 20
"""For so long the queue's first process may import before the first run: someone fills in the Train page."""


@dataclass(frozen=True)
class Series:
    """Seconds: of each run until `started` and until its first step, and of all runs together."""

    begun: list[float]
    stepped: list[float]
    total: float


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=20)
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["ISOVIZ_HOME"] = folder  # its own cache of tokens
        store = Store(folder)
        with_command(store, 1)  # tokenises what all others read
        fresh = with_command(store, chosen.runs)
        queued = with_queue(store, chosen.runs)
        store.close()
    table = Table(
        f"{chosen.runs} runs of {MODEL} on {TASK} (64 rows, one epoch), seconds",
        ["", "queue", "command line", "command line / queue"],
    )
    for name, queue_value, command_value in (
        ("until training begins, median", statistics.median(queued.begun), statistics.median(fresh.begun)),
        ("until training begins, slowest", max(queued.begun), max(fresh.begun)),
        ("until the first step, median", statistics.median(queued.stepped), statistics.median(fresh.stepped)),
        ("all runs", queued.total, fresh.total),
    ):
        table.rows.append([name, f"{queue_value:.2f}", f"{command_value:.2f}", f"{command_value / queue_value:.1f}"])
    queue_value, command_value = statistics.median(queued.stepped), statistics.median(fresh.stepped)
    met = queue_value <= 1 and command_value >= 3 * queue_value
    table.notes.append(
        "On Linux, each queued run is a fork of a process that has imported everything. Load average when the measurement began: "
        f"{load:.1f}."
    )
    missed = [] if met else ["median first step within 1 s, and three times sooner"]
    return finish(chosen, "queue", "## Queue", machine(["torch", "transformers"], "one thread per run"), missed, table)


def with_queue(store: Store, count: int) -> Series:
    """By a runner whose first process has had time to import everything."""
    configs = planning.expand(
        [MODEL], [TASK], [("baseline", {})], range(count), epochs=1, max_train=64, max_eval=64, threads=1
    )
    runner = Runner(store, ["cpu"])
    runner.start()
    runner.expect()  # as the Train page does when it is opened
    try:
        time.sleep(PREPARED_SECONDS)
        began = time.time()
        ids = store.create(configs)
        while any(store.get(run_id).ended is None for run_id in ids):
            time.sleep(0.1)
    finally:
        runner.close()
    rows = [store.get(run_id) for run_id in ids]
    assert all(row.status == "finished" for row in rows), [row.error for row in rows]
    times = [moments(store, row.id, row.started or 0.0) for row in rows]
    return Series(
        [begun for begun, _ in times], [step for _, step in times], max(row.ended or 0 for row in rows) - began
    )


def with_command(store: Store, count: int) -> Series:
    """The same runs by `python -m isoviz train`, each in a new process."""
    times, began = [], time.time()
    for seed in range(count):
        command = ["-m", "isoviz", "train", "--model", MODEL, "--task", TASK, "--seeds", str(seed)]
        words = ["--epochs", "1", "--max-train", "64", "--max-eval", "64", "--threads", "1", "--store"]
        process_began = time.time()
        python([*command, *words, store.url], OMP_NUM_THREADS="1")
        times.append(moments(store, store.list(limit=1)[0].id, process_began))
    return Series([begun for begun, _ in times], [step for _, step in times], time.time() - began)


def moments(store: Store, run_id: str, began: float) -> tuple[float, float]:
    """Seconds from `began` to `started` and to the first step."""
    first: dict[str, float] = {}
    for _, event in store.events(run_id):
        first.setdefault(event["kind"], event["time"] - began)
    return first["started"], first["stepped"]


if __name__ == "__main__":
    sys.exit(main())
