"""How long the store takes with 1,000 runs of 1,000 events: appends, cursor reads, the list of runs, a claim.

    python benchmarks/store.py [--runs 1000] [--events 1000] [--store URL_OR_DIR]

Fills a store (by default in a temporary folder; it should be empty), then measures while it is full.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from isoviz.config import RunConfig
from isoviz.events import Event, Finished, Measured, Stepped
from isoviz.metrics.record import CloudRecord, Measurement, Reading
from isoviz.runs.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--store", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = Store(options.store or folder)
        begin = time.perf_counter()
        ids = fill(store, options.runs, options.events)
        seconds = time.perf_counter() - begin
        print(f"{options.runs} runs x {options.events} events written in {seconds:.1f} s")
        measure(store, ids, options.events, options.repeats)
        store.close()


def fill(store: Store, runs: int, events: int) -> list[str]:
    """Finished runs, written as a worker writes them: ten steps at a time, a measurement of all clouds per hundred steps."""
    ids = store.create([RunConfig(seed=seed, params={"lam": 1.0}) for seed in range(runs)])
    batches: list[list[Event]] = []
    for start in range(1, events - 1, 10):
        batch: list[Event] = [step(number) for number in range(start, min(start + 10, events - 1))]
        if start % 100 == 91:
            batch[-1] = measured(start)
        batches.append(batch)
    for run_id in ids:
        store.claim("benchmark", "cpu", id=run_id)
        for batch in batches:
            store.append(run_id, batch)
        store.append(run_id, [Finished(metrics={"accuracy": 0.9}, isotropy=measured(0).isotropy, timing={})])
    return ids


def step(number: int) -> Stepped:
    losses = {"total": random.random(), "task": random.random(), "istar": random.random()}
    return Stepped(
        step=number, epoch=number / 100, losses=losses, learning_rate=1e-4, samples_per_second=900.0, eta_seconds=9.0
    )


def measured(number: int) -> Measured:
    numbers = ("isoscore", "isoscore_unbiased", "mean_cosine", "participation_ratio", "effective_rank", "twonn")
    readings = {slug: Reading(value=0.3) for slug in numbers}
    readings["ev"] = Reading(value=tuple(random.random() for _ in range(50)))
    clouds = {
        name: CloudRecord(cloud=name, split="validation", n=500, d=128, readings=readings)
        for name in ("head", "pooled", "layers", *(f"layer_{layer}" for layer in range(1, 6)))
    }
    arrays = "arrays/epoch-000.safetensors"
    return Measured(step=number, epoch=number // 100, isotropy=Measurement(clouds=clouds), arrays=arrays)


def measure(store: Store, ids: list[str], events: int, repeats: int) -> None:
    """Every figure with the store full; the appends go to one more run."""
    choose = random.Random(0)
    report("read 20 events after a cursor", lambda: store.events(choose.choice(ids), events - 20), repeats)
    report("read a whole run", lambda: store.events(choose.choice(ids)), repeats // 5)
    report("signals of a run", lambda: store.signals(choose.choice(ids)), repeats)
    report("one run", lambda: store.get(choose.choice(ids)), repeats)
    report("list the newest 50", lambda: store.list(limit=50), repeats // 5)
    report("list all", lambda: store.list(), max(5, repeats // 50))
    report("counts", lambda: store.counts(), repeats // 5)
    report("claim when nothing waits", lambda: store.claim("benchmark", "cpu"), repeats)
    (run_id,) = store.create([RunConfig()])
    report("claim", lambda: store.claim("benchmark", "cpu"), 1)
    report("append one event", lambda: store.append(run_id, [step(1)]), repeats)
    report("append ten events", lambda: store.append(run_id, [step(1)] * 10), repeats)
    report("heartbeat", lambda: store.heartbeat(run_id), repeats)


def report(what: str, call: Callable[[], object], repeats: int) -> None:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - begin))
    times.sort()
    p95 = times[min(len(times) - 1, int(0.95 * len(times)))]
    print(f"{what:32} p50 {statistics.median(times):8.2f} ms   p95 {p95:8.2f} ms   ({repeats} times)")


if __name__ == "__main__":
    main()
