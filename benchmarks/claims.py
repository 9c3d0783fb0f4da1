"""How many queued runs a PostgreSQL server hands out per second: 10,000 runs, up to 500 workers.

    python benchmarks/claims.py [--runs 10000] [--workers 1 16 100 500] [--processes 4] [--seconds 60] [--connections 600]

Starts a server in a temporary folder. A worker is a thread with a connection. First each takes one run and repeats the queries of a
training worker as fast as the server answers: "can train" is how many workers that rate would serve. Then it claims a
run, ends it, and claims the next, until the queue is empty or a minute is over. Clients and server share this machine, so a server
with its own cores does better.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from typing import Final

import _report  # noqa: F401  finds `tests`

from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import Stopped
from isoviz.runs.emitter import TICK_SECONDS
from isoviz.runs.runner import WATCH_SECONDS
from isoviz.runs.store import Store
from tests.runs.postgres_server import Server, binaries

PULSE_SECONDS: Final = 5.0
READS: Final = round(1 / WATCH_SECONDS + 1 / TICK_SECONDS)
"""Times a second that a run's processes look whether it is to stop."""


@dataclass
class Share:
    """The work done by the workers of one process.

    Attributes:
        runs: the ids that they claimed.
        seconds: of each claim.
        refused: errors of workers without a connection.
        pulses: seconds of a training worker's queries, done as fast as the server answers.
    """

    runs: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    pulses: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 16, 100, 500])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0, help="after which a level ends, though runs are left")
    parser.add_argument("--connections", type=int, default=600, help="the server's max_connections")
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        parser.error("PostgreSQL is not installed")
    print(
        f"{'workers':>8} {'claims/s':>9} {'median':>9} {'99 %':>9} {'can train':>10} {'no connection':>14} {'twice':>6}"
    )
    with Server(programs, connections=options.connections) as server:
        for workers in options.workers:
            url = server.create(f"runs_{workers}")
            store = Store(url)
            store.create([RunConfig(seed=seed) for seed in range(options.runs)])
            share, seconds = drain(url, workers, min(workers, options.processes), options.seconds)
            store.close()
            median = 1e3 * statistics.median(share.seconds)
            slow = 1e3 * statistics.quantiles(share.seconds, n=100)[98]
            twice = len(share.runs) - len(set(share.runs))
            print(
                f"{workers:>8} {len(share.runs) / seconds:>9.0f} {median:>6.1f} ms {slow:>6.1f} ms "
                f"{share.pulses / PULSE_SECONDS:>10.0f} {len(share.refused):>14} {twice:>6}",
                flush=True,
            )
            for words in sorted(set(share.refused))[:2]:
                print(f"         {words}")


def drain(url: str, workers: int, processes: int, most: float) -> tuple[Share, float]:
    """Let workers train, then empty a queue; returns their combined work and the seconds for the queue."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    together = context.Barrier(processes + 1)
    parts = [workers // processes + (k < workers % processes) for k in range(processes)]
    started = [context.Process(target=_process, args=(url, part, most, together, answers)) for part in parts]
    for process in started:
        process.start()
    together.wait()
    begin = time.perf_counter()
    shares: list[Share] = [answers.get() for _ in started]
    seconds = time.perf_counter() - begin
    for process in started:
        process.join()
    every = Share()
    for share in shares:
        every.runs += share.runs
        every.seconds += share.seconds
        every.refused += share.refused
        every.pulses += share.pulses
    return every, seconds


def _process(url: str, workers: int, most: float, together: Barrier, answers: multiprocessing.Queue[Share]) -> None:
    share, lock = Share(), threading.Lock()
    stores: list[Store] = []

    def connect(_: int) -> None:
        try:
            store = Store(url)
        except StoreError as error:
            share.refused.append(" ".join(str(error).split())[-110:])
            return
        stores.append(store)

    def train(store: Store) -> None:
        training = store.claim("worker", "cpu")
        assert training is not None
        until = time.monotonic() + PULSE_SECONDS
        while time.monotonic() < until:
            for _ in range(READS):
                store.signals(training.id)
            store.heartbeat(training.id, training.attempt)
            with lock:
                share.pulses += 1

    def work(store: Store) -> None:
        until = time.monotonic() + most
        while time.monotonic() < until:
            begin = time.perf_counter()
            row = store.claim("worker", "cpu")
            took = time.perf_counter() - begin
            if row is None:
                return
            store.append(row.id, [Stopped(step=0)], attempt=row.attempt)
            with lock:
                share.runs.append(row.id)
                share.seconds.append(took)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(connect, range(workers)))
        list(pool.map(train, stores))
        together.wait()
        list(pool.map(work, stores))
    answers.put(share)


if __name__ == "__main__":
    main()
