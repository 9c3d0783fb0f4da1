"""Runs under faults: they end with every event, metric and measure of the undisturbed run, bit for bit.

    python benchmarks/faults.py [--only kills apps postgres disks queue] [--methods istar isobn ...] [--seed 0]

- kills: 40 at random events, over all methods; half of commands without an app, resumed immediately by `isoviz runs resume`. `--methods`
  selects some of the methods, for shorter sessions.
- apps: 10 apps killed, each with a separate run, half of them with the run's worker.
- postgres: 5 crashes of the server (its programs must be installed).
- disks: 5 that fill up during a run and are freed later (file systems in memory: needs root).
- queue: 500 runs for two apps and four other workers at once, on SQLite and on PostgreSQL by TCP.

Prints one table, after a line for each run on stderr, and ends with exit code 1 where anything is lost, doubled or different.
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
from dataclasses import dataclass, field
from pathlib import Path

from _report import Table, machine

from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs import faults
from tests.runs.faults import Outcome
from tests.runs.postgres_server import Server, binaries

KILLS, APP_KILLS, CRASHES, DISKS, RUNS = 40, 10, 5, 5, 500
DISK_BYTES = 96 * 2**20
TRIES = 3
"""Runs for each fault that is wanted: a short run may end before it is hit."""


class References:
    """The events of the undisturbed runs, produced on demand."""

    def __init__(self, folder: Path, chosen: list[str]) -> None:
        self._folder = folder
        self.chosen = chosen
        self._known: dict[str, list[dict[str, object]]] = {}

    def __call__(self, method: str) -> list[dict[str, object]]:
        if method not in self._known:
            self._known[method] = faults.undisturbed(faults.config(method), self._folder / method)
        return self._known[method]


@dataclass
class Line:
    """The outcome of the runs under one kind of fault.

    Attributes:
        wanted, done: planned faults, and those that hit a running run.
        runs, same: number of runs, and of those that report the same as the undisturbed ones.
        inside, older: resumes inside an epoch; resumes from the checkpoint before the newest.
        lost, doubled: runs that were lost or executed twice.
        notes: errors, and messages of the runs.
    """

    fault: str
    wanted: int
    done: int = 0
    runs: int = 0
    same: int = 0
    inside: int = 0
    older: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def until(self, done: int, disturb: Callable[[int], Outcome]) -> None:
        """Disturb runs until enough faults have hit one.

        Args:
            disturb: called with the number of missing faults.
        """
        tries = TRIES * (done - self.done)
        while self.done < done and tries:
            tries -= 1
            self.add(disturb(done - self.done))

    def add(self, outcome: Outcome) -> None:
        """Count one run."""
        met = ", ".join(outcome.faults) or "ended before it was hit"
        print(f"{outcome.name}: {met}; {'same' if outcome.same else outcome.trouble}", file=sys.stderr, flush=True)
        self.runs += 1
        self.done += len(outcome.faults)
        self.same += outcome.same
        self.inside += outcome.mid_epoch
        self.older += outcome.fallbacks
        if not outcome.same:
            self.notes.append(f"{outcome.name}: {outcome.trouble}")

    @property
    def good(self) -> bool:
        """Whether all faults were had, and none cost anything."""
        return self.done >= self.wanted and self.same == self.runs and self.lost == self.doubled == 0

    def cells(self) -> list[str]:
        """As a row of the table."""
        numbers = (self.runs, self.same, self.inside, self.older, self.lost, self.doubled)
        return [self.fault, f"{self.done} of {self.wanted}", *map(str, numbers), f"{self.seconds / 60:.1f}"]


HEADER = [
    "fault",
    "done",
    "runs",
    "bit-equal",
    "resumed inside an epoch",
    "from the checkpoint before",
    "lost",
    "doubled",
    "minutes",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[[Path, References, random.Random], Iterator[Line]]] = {
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
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="isoviz-faults-", ignore_cleanup_errors=True) as name:
        os.environ["ISOVIZ_HOME"] = str(Path(name) / "home")
        os.environ["HF_HUB_OFFLINE"] = "1"
        references = References(Path(name) / "undisturbed", chosen.methods)
        for part in chosen.only:
            begin = time.perf_counter()
            for line in parts[part](Path(name), references, random.Random(chosen.seed)):
                line.seconds = time.perf_counter() - begin
                begin = time.perf_counter()
                lines.append(line)
    table = Table("Runs under faults, against undisturbed ones", HEADER, [line.cells() for line in lines])
    table.notes = [
        "",
        *(f"{line.fault}: {note}" for line in lines for note in line.notes),
        machine(["torch"], "1 thread"),
    ]
    print(table.text())
    sys.exit(0 if all(line.good for line in lines) else 1)


def kills(folder: Path, references: References, draw: random.Random) -> Iterator[Line]:
    """Half of them in commands, half in an app's workers, shared out evenly among the methods."""
    slugs = faults.slugs()
    each = {slug: KILLS // 2 // len(slugs) + (index < KILLS // 2 % len(slugs)) for index, slug in enumerate(slugs)}
    each = {slug: count for slug, count in each.items() if slug in references.chosen}
    store = Store(folder / "kills")
    commands = Line("command line killed", sum(each.values()))
    for slug, count in each.items():
        commands.until(
            commands.done + count,
            lambda missing, slug=slug: faults.killed_commands(store, slug, missing, references(slug), draw),
        )
    yield commands
    workers = Line("app's worker killed", sum(each.values()))
    app = faults.start_app(store)
    try:
        for slug, count in each.items():
            workers.until(
                workers.done + count,
                lambda missing, slug=slug: faults.killed_workers(store, slug, missing, references(slug), draw),
            )
    finally:
        faults.end_app(app)
    yield workers


def apps(folder: Path, references: References, draw: random.Random) -> Iterator[Line]:
    store = Store(folder / "apps")
    for with_worker in (False, True):
        line = Line("app and worker killed" if with_worker else "app killed", APP_KILLS // 2)
        for slug in sampled(references.chosen, line.wanted, draw):
            line.until(
                line.done + 1,
                lambda _, slug=slug, whole=with_worker: faults.killed_app(
                    store, slug, references(slug), draw, with_worker=whole
                ),
            )
        yield line


def postgres(folder: Path, references: References, draw: random.Random) -> Iterator[Line]:
    line = Line("PostgreSQL crashed", CRASHES)
    with served() as server:
        store = Store(server.create("faults"))
        for slug in sampled(references.chosen, CRASHES, draw):
            line.add(faults.crashed_server(server, store, slug, references(slug), draw))
        store.close()
    yield line


def disks(folder: Path, references: References, draw: random.Random) -> Iterator[Line]:
    line = Line("disk filled and freed", DISKS)
    for number, slug in enumerate(sampled(references.chosen, DISKS, draw)):
        with disk(folder / f"disk-{number}") as mounted:
            outcome, row = faults.filled_disk(Store(mounted), mounted, slug, references(slug), draw)
            line.add(outcome)
            error = row.error or {}
            line.notes.append(f"while full {row.status}: {error.get('message', '')} {error.get('advice', '')}".rstrip())
    yield line


def queue(folder: Path, references: References, draw: random.Random) -> Iterator[Line]:
    with served() as server:
        for name, url in (("SQLite", str(folder / "queue")), ("PostgreSQL by TCP", server.create("queue"))):
            (folder / name).mkdir()
            store = Store(url)
            counts = faults.share_queue(store, RUNS, folder / name)
            store.close()
            line = Line(f"2 apps, 4 workers, {name}", RUNS, counts["finished"], RUNS, counts["finished"])
            line.lost, line.doubled = counts["lost"], counts["doubled"]
            line.notes.append(f"the runs were shared by {counts['owners']}")
            yield line


def sampled(slugs: list[str], count: int, draw: random.Random) -> list[str]:
    """Methods in random order, each equally often."""
    return [
        slug for begin in range(0, count, len(slugs)) for slug in draw.sample(slugs, min(len(slugs), count - begin))
    ]


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


if __name__ == "__main__":
    main()
