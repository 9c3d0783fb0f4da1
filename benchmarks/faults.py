"""Runs under faults: whatever happens to them, they end with every event, metric and measure of the undisturbed run, bit for bit.

    python benchmarks/faults.py [--only kills apps postgres disks queue] [--methods istar isobn ...] [--seed 0]

- kills: 40 at random events, over all methods; half of commands without an app, resumed at once by `isoviz runs resume`. `--methods`
  takes some of the methods, for a machine that has little time at once.
- apps: 10 apps killed, half of them with the run's worker.
- postgres: 5 crashes of the server (its programs must be installed).
- disks: 5 that fill up under a run, and are freed (file systems in memory: needs root).
- queue: 500 runs for two apps and four other workers at once, on SQLite and on PostgreSQL by TCP.

Prints a table and ends with exit code 1 where anything is lost, doubled or different.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _report import Table

from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs import faults
from tests.runs.faults import Outcome
from tests.runs.postgres_server import Server, binaries

KILLS, APP_KILLS, CRASHES, DISKS, RUNS = 40, 10, 5, 5, 500
DISK_BYTES = 96 * 2**20


class References:
    """What the undisturbed runs report, made when asked for."""

    def __init__(self, folder: Path, chosen: list[str]) -> None:
        self._folder = folder
        self.chosen = chosen
        self._known: dict[str, list[dict[str, object]]] = {}

    def __call__(self, method: str) -> list[dict[str, object]]:
        if method not in self._known:
            self._known[method] = faults.undisturbed(faults.config(method), self._folder / method)
        return self._known[method]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[[Path, References, random.Random], bool]] = {
        "kills": kills,
        "apps": apps,
        "postgres": postgres,
        "disks": disks,
        "queue": queue,
    }
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--methods", nargs="+", choices=faults.slugs(), default=faults.slugs(), metavar="SLUG")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="isoviz-faults-", ignore_cleanup_errors=True) as name:
        os.environ["ISOVIZ_HOME"] = str(Path(name) / "home")
        os.environ["HF_HUB_OFFLINE"] = "1"
        references = References(Path(name) / "undisturbed", chosen.methods)
        good = [parts[part](Path(name), references, random.Random(chosen.seed)) for part in chosen.only]
    sys.exit(0 if all(good) else 1)


def kills(folder: Path, references: References, draw: random.Random) -> bool:
    """Half of them in commands, half in an app's workers, shared out evenly among the methods."""
    slugs = faults.slugs()
    each = {slug: KILLS // 2 // len(slugs) + (place < KILLS // 2 % len(slugs)) for place, slug in enumerate(slugs)}
    each = {slug: count for slug, count in each.items() if slug in references.chosen}
    store = Store(folder / "kills")
    outcomes = []
    for slug, count in each.items():
        outcomes.append(said(faults.killed_commands(store, slug, count, references(slug), draw)))
    app = faults.start_app(store)
    try:
        for slug, count in each.items():
            outcomes.append(said(faults.killed_workers(store, slug, count, references(slug), draw)))
    finally:
        faults.end_app(app)
    return table("Processes killed at random events", outcomes, 2 * sum(each.values()))


def apps(folder: Path, references: References, draw: random.Random) -> bool:
    store = Store(folder / "apps")
    chosen = draw.sample(faults.slugs(), 5)
    outcomes = [
        said(faults.killed_apps(store, slug, APP_KILLS // len(chosen), references(slug), draw)) for slug in chosen
    ]
    return table("Apps killed", outcomes, APP_KILLS)


def postgres(folder: Path, references: References, draw: random.Random) -> bool:
    with served() as server:
        store = Store(server.create("faults"))
        chosen = draw.sample(faults.slugs(), CRASHES)
        outcomes = [said(faults.crashed_server(server, store, slug, references(slug), draw)) for slug in chosen]
        store.close()
    return table("PostgreSQL crashed", outcomes, CRASHES)


def disks(folder: Path, references: References, draw: random.Random) -> bool:
    outcomes, rows = [], []
    for number, slug in enumerate(draw.sample(faults.slugs(), DISKS)):
        with disk(folder / f"disk-{number}") as mounted:
            outcome, row = faults.filled_disk(Store(mounted), mounted, slug, references(slug), draw)
            outcomes.append(said(outcome))
            rows.append(row)
    good = table("Disks filled and freed", outcomes, DISKS)
    for row in rows:
        error = row.error or {}
        print(f"  while full: {row.status}; {error.get('message', '')} {error.get('advice', '')}".rstrip())
    return good


def queue(folder: Path, references: References, draw: random.Random) -> bool:
    shared = Table(
        f"{RUNS} runs for two apps and four workers", ["store", "finished", "lost", "doubled", "owners", "seconds"]
    )
    good = True
    with served() as server:
        for name, url in (("SQLite", str(folder / "queue")), ("PostgreSQL by TCP", server.create("queue"))):
            (folder / name).mkdir()
            store = Store(url)
            begin = time.perf_counter()
            counts = faults.share_queue(store, RUNS, folder / name)
            seconds = f"{time.perf_counter() - begin:.0f}"
            shared.rows.append(
                [name, *(str(counts[key]) for key in ("finished", "lost", "doubled", "owners")), seconds]
            )
            good = good and (counts["finished"], counts["lost"], counts["doubled"]) == (RUNS, 0, 0)
            store.close()
    print(shared.text())
    return good


@contextmanager
def served() -> Iterator[Server]:
    programs = binaries()
    if programs is None:
        sys.exit("PostgreSQL's initdb was not found (PATH, /usr/lib/postgresql/*/bin)")
    with Server(programs, free_port()) as server:
        yield server


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """A small file system in memory."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def said(outcome: Outcome) -> Outcome:
    print(
        f"{outcome.name}: {', '.join(outcome.faults)} -> {'same' if outcome.same else outcome.trouble}",
        file=sys.stderr,
        flush=True,
    )
    return outcome


def table(title: str, outcomes: list[Outcome], wanted: int) -> bool:
    """Print what became of the runs; whether all are the same as undisturbed ones, under as many faults as wanted."""
    shown = Table(title, ["run", "faults", "resumed inside an epoch", "same, bit for bit", "trouble"])
    for one in outcomes:
        same = "yes" if one.same else "NO"
        shown.rows.append([one.name, str(len(one.faults)), str(one.mid_epoch), same, one.trouble])
    total = sum(len(one.faults) for one in outcomes)
    inside = sum(one.mid_epoch for one in outcomes)
    shown.rows.append(["all", str(total), str(inside), f"{sum(one.same for one in outcomes)} of {len(outcomes)}", ""])
    print(shown.text(), flush=True)
    if total < wanted:
        print(f"  {total} faults met a run that still ran; wanted: {wanted}")
    return total >= wanted and all(one.same for one in outcomes)


if __name__ == "__main__":
    main()
