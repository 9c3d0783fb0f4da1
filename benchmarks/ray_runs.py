"""Runs over a real Ray cluster, some processes killed midway, the head restarted once: each run ends as an undisturbed one does.

    python benchmarks/ray_runs.py [--runs 20] [--kills 3] [--cpus 2] [--out docs]

`python -m isoviz worker --ray` submits the runs to a head on this machine. They train the bundled model; the results go to a PostgreSQL
server that is started for this. Processes are killed when their run has saved a checkpoint; so is the head, with all its processes, when
half of the runs have finished, after which head and command are started again. Exit code 1 unless all runs finish with the events, metrics
and measures of an undisturbed run, bit for bit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from _report import Table, finish, machine, options

from isoviz.events import Lost, Resumed
from isoviz.runs.store import Store
from tests.runs import faults
from tests.runs.faults import Outcome, judge, undisturbed
from tests.runs.observing import until
from tests.runs.postgres_server import Server, binaries
from tests.runs.ray_head import ROOT, Head

HOURS = 3600.0


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=2, help="runs that the cluster trains at once")
    chosen = parser.parse_args()
    postgres = binaries()
    if postgres is None or find_spec("ray") is None:
        parser.error("needs PostgreSQL and Ray")
    base = faults.config("istar")
    configs = [base.model_copy(update={"seed": seed}) for seed in range(chosen.runs)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Server(postgres) as server:
        os.environ |= {
            "ISOVIZ_HOME": folder,
            "PYTHONPATH": str(ROOT),
            "TQDM_DISABLE": "1",
        }
        store = Store(server.create("runs"))
        with Head(chosen.cpus) as head:
            command = [sys.executable, "-m", "isoviz", "worker", "--store", store.url, "--ray", head.address]
            began = time.monotonic()
            runs = store.create(configs)
            with subprocess.Popen(command) as first:
                kill_processes(store, chosen.kills)
                until(lambda: store.counts()["finished"] >= chosen.runs // 2 and midway(store), HOURS)
                head.crash()
                first.kill()
            head.start()
            with subprocess.Popen([*command, "--idle", "10"]) as second:
                until(lambda: all(store.get(run).ended and store.get(run).status != "lost" for run in runs), HOURS)
                seconds = time.monotonic() - began
                assert second.wait() == 0
        outcomes = [
            judge(Outcome(run), store, run, undisturbed(config, Path(folder) / f"alone-{config.seed}"))
            for run, config in zip(runs, configs, strict=True)
        ]
        table = report(store, runs, outcomes, chosen.kills, seconds)
        store.close()
    about = machine(["torch", "transformers"], f"Ray 2.60, {chosen.cpus} runs at once, one thread each")
    missed = [f"{one.name}: {one.trouble}" for one in outcomes if not one.same]
    return finish(chosen, "ray", "## Ray", about, missed, table)


def midway(store: Store) -> dict[str, int]:
    """Running runs that have saved a checkpoint, and their processes."""
    running = store.list(status="running")
    return {row.id: row.pid for row in running if row.pid and store.signals(row.id).checkpoint_step > 0}


def kill_processes(store: Store, count: int) -> None:
    """Kill the processes of `count` runs midway, with at least two finished runs between one and the next."""
    killed: set[str] = set()
    while len(killed) < count:
        candidates = {run: pid for run, pid in midway(store).items() if run not in killed}
        if candidates and store.counts()["finished"] >= 2 * len(killed):
            run, pid = candidates.popitem()
            os.kill(pid, signal.SIGKILL)
            killed.add(run)
        time.sleep(0.05)


def report(store: Store, runs: list[str], outcomes: list[Outcome], kills: int, seconds: float) -> Table:
    losses = [len(store.events_of_kind(run, Lost)) for run in runs]
    resumes = [len(store.events_of_kind(run, Resumed)) for run in runs]
    table = Table(
        f"{len(runs)} runs over a Ray cluster, {kills} processes killed and the head restarted once", ["", "runs"]
    )
    for name, number in (
        ("finished", sum(store.get(run).status == "finished" for run in runs)),
        (
            "lost once, and resumed from a checkpoint",
            sum(loss == 1 and back == 1 for loss, back in zip(losses, resumes, strict=True)),
        ),
        ("lost again", sum(loss > 1 for loss in losses)),
        ("with the events, metrics and measures of an undisturbed run, bit for bit", sum(one.same for one in outcomes)),
    ):
        table.rows.append([name, str(number)])
    table.notes.append(f"{seconds:.0f} seconds in all, {sum(losses)} losses.")
    return table


if __name__ == "__main__":
    sys.exit(main())
