"""This checkout against another one, in turns: imports, the command line, and a rerun of every page on a store full of runs.

    git worktree add /tmp/before COMMIT
    python benchmarks/against.py /tmp/before [--runs 300] [--events 40] [--rounds 5]
    python benchmarks/against.py /tmp/before --runs 2000 --events 1000 --rounds 3 --lists     # pages and `runs list` only

Each version fills a store with the bundled examples, repeated in setups of 25 seeds; `--events` fills each run up
with optimiser steps. A page's figure is a warm rerun in the server's process, without browser: the
median of its processor time, and the 95th percentile of its elapsed time, over `RERUNS_PER_ROUND` reruns per round. Of each command
the whole process counts, beside what its imports take. Bars: at most 1.15 times as slow as the other checkout, which is what two equal
ones differ by on a noisy machine; a page's 95th percentile at most 300 ms.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

from _report import ROOT, Table, python

BAR = 1.15
PAGE_BAR_SECONDS = 0.3
RERUNS_PER_ROUND = 10
PAGES = ("home", "explore", "train", "live", "tradeoffs", "results", "whatif", "run")
OPEN = "from isoviz.runs.store import Store; Store().close()"
LEAST = "import sqlalchemy"
"""What a list of runs cannot do without."""
IMPORTS = ("isoviz", "isoviz.config", "isoviz.runs.store", "isoviz.methods", "dashboard.shared.menu")

# Run in each checkout: nothing here may be younger than the older of the two.
FILL = """
import sys
from isoviz.events import Stepped, parse_event
from isoviz.runs.examples import Examples
from isoviz.runs.store import Store
count, least = int(sys.argv[1]), int(sys.argv[2])
examples, store = Examples(), Store()
losses = {"total": 0.71, "task": 0.69, "istar": 0.02}
step = Stepped(step=7, epoch=0.5, losses=losses, learning_rate=1e-4, samples_per_second=900.0, eta_seconds=9.0)
rows = examples.list()
for number in range(count):
    row, part = rows[number % len(rows)], number // len(rows)
    setup = {"seed": 10 + part % 25, "learning_rate": 1e-5 * (1 + part // 25)}
    (run,) = store.create([row.config.model_copy(update=setup)], claim="benchmark")
    events = [parse_event(data) for _, data in examples.events(row.id)][:-1]
    store.append(run, [*events, *[step] * (least - len(events) - 1), row.result])
print(run)
"""
RERUNS = """
import functools, json, os, statistics, sys, time
from pathlib import Path
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
# AppTest looks for components in all installed packages at every rerun; a server does so once
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
root, run, reruns, pages = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
seconds = {}
for name in pages:
    app = AppTest.from_file(root / "dashboard" / "app.py", default_timeout=300).run()
    app.switch_page(str(root / "pages" / f"{name}.py"))
    if name == "run":
        app.query_params["id"] = run
    app.run()
    assert not app.exception, (name, app.exception)
    times = []
    for _ in range(reruns):
        began = time.process_time(), time.perf_counter()
        app.run()
        times.append((time.process_time() - began[0], time.perf_counter() - began[1]))
    walls = sorted(wall for _, wall in times)
    seconds[name] = statistics.median(cpu for cpu, _ in times), walls
print(json.dumps(seconds))
"""


def main() -> None:
    """Print both checkouts' figures and their ratio; exit 1 if a row misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="another checkout")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--events", type=int, default=0, help="of each run, at least")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lists", action="store_true", help="pages and `runs list` only")
    options = parser.parse_args()
    trees = {"before": options.before.resolve(), "now": ROOT}
    figures: dict[str, dict[str, list[float]]] = {}

    def note(row: str, tree: str, seconds: float) -> None:
        figures.setdefault(row, {}).setdefault(tree, []).append(seconds)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        homes = {tree: Path(folder) / tree for tree in trees}
        filling = ["-c", FILL, str(options.runs), str(options.events)]
        runs = {tree: call(trees[tree], homes[tree], filling).strip() for tree in trees}
        for tree in trees:
            note("first opening of the store", tree, cpu_seconds(trees[tree], homes[tree], ["-c", OPEN]))
        walls: dict[str, dict[str, list[float]]] = {}
        for number in range(options.rounds):
            order = list(trees) if number % 2 == 0 else list(trees)[::-1]
            for tree in order:
                for row, arguments in commands(options.lists).items():
                    note(row, tree, cpu_seconds(trees[tree], homes[tree], arguments))
            for tree in order:
                arguments = ["-c", RERUNS, str(trees[tree]), runs[tree], str(RERUNS_PER_ROUND), *PAGES]
                reply = call(trees[tree], homes[tree], arguments).strip().splitlines()[-1]
                for page, (seconds, times) in json.loads(reply).items():
                    note(f"rerun of {page}", tree, seconds)
                    walls.setdefault(page, {}).setdefault(tree, []).extend(times)
    print(f"{options.runs} runs of at least {options.events} events\n")
    table = Table("This checkout against the other", ["", "before", "now", "now / before"])
    slower = []
    for row, trees_seconds in figures.items():
        before, now = (statistics.median(trees_seconds[tree]) for tree in ("before", "now"))
        ratio = statistics.median(b / a for a, b in zip(trees_seconds["before"], trees_seconds["now"], strict=True))
        table.rows.append([row, f"{1000 * before:.0f} ms", f"{1000 * now:.0f} ms", f"{ratio:.2f}"])
        if ratio > BAR and now - before > 0.005:
            slower.append(row)
    print(table.text())
    for row in ("isoviz runs list", "isoviz runs list --json"):
        before, now = (
            statistics.median(figures[row][tree]) / statistics.median(figures[LEAST][tree]) for tree in trees
        )
        print(f"{row}: {before:.1f} times '{LEAST}' before, {now:.1f} times now")
    on_clock = Table("95th percentile of a page's rerun, on the clock", ["", "before", "now"])
    for page, of_page in walls.items():
        before, now = (percentile(of_page[tree]) for tree in ("before", "now"))
        on_clock.rows.append([page, f"{1000 * before:.0f} ms", f"{1000 * now:.0f} ms"])
        if now > PAGE_BAR_SECONDS:
            slower.append(f"{page} on the clock")
    print(on_clock.text())
    if slower:
        sys.exit(f"\nslower than {BAR} times: {', '.join(slower)}")


def commands(lists: bool) -> dict[str, list[str]]:
    """Commands that run as separate processes, by row name."""
    importing = {f"import {module}": ["-c", f"import {module}"] for module in IMPORTS}
    helping = {"isoviz --help": ["-m", "isoviz", "--help"]}
    listing = {
        LEAST: ["-c", "import sqlalchemy"],
        "imports of isoviz runs list": ["-c", "import isoviz.__main__, isoviz.commands.runs"],
        "isoviz runs list": ["-m", "isoviz", "runs", "list"],
        "isoviz runs list --json": ["-m", "isoviz", "runs", "list", "--json"],
    }
    return listing if lists else importing | helping | listing


def percentile(seconds: list[float]) -> float:
    """The 95th, as the largest that at most 5 % exceed."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]


def call(tree: Path, home: Path, arguments: list[str]) -> str:
    """What Python prints in a checkout."""
    return python(arguments, tree, ISOVIZ_HOME=str(home), ISOVIZ_RUNNER="off")


def cpu_seconds(tree: Path, home: Path, arguments: list[str]) -> float:
    """Processor seconds of one process with its children."""
    began = os.times()
    call(tree, home, arguments)
    ended = os.times()
    return ended.children_user + ended.children_system - began.children_user - began.children_system


if __name__ == "__main__":
    main()
