"""This checkout against another one, in turns: imports, the command line, and a rerun of every page on a store full of runs.

    git worktree add /tmp/before COMMIT
    python benchmarks/against.py /tmp/before [--runs 300] [--rounds 5]

The store is the fixture of `tests/old_store`, its finished runs repeated under new seeds, so that both versions open it. A page's
figure is the processor time of a warm rerun in the server's process, without browser. Each row's bar: at most 1.15 times as slow,
which is what two equal checkouts differ by on a noisy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._report import Table

ROOT = Path(__file__).resolve().parent.parent
BAR = 1.15
PAGES = ("home", "explore", "train", "live", "tradeoffs", "results", "whatif", "run")
IMPORTS = ("isoviz", "isoviz.config", "isoviz.runs.store", "isoviz.methods", "dashboard.menu")

# Run in each checkout: nothing here may be younger than the older of the two.
RERUNS = """
import json, os, statistics, sys, time
from pathlib import Path
from streamlit.testing.v1 import AppTest
root, run, pages = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
seconds = {}
for name in pages:
    app = AppTest.from_file(root / "dashboard" / "app.py", default_timeout=300).run()
    app.switch_page(str(root / "pages" / f"{name}.py"))
    if name == "run":
        app.query_params["id"] = run
    app.run()
    assert not app.exception, (name, app.exception)
    times = []
    for _ in range(5):
        began = time.process_time()
        app.run()
        times.append(time.process_time() - began)
    seconds[name] = statistics.median(times)
print(json.dumps(seconds))
"""


def main() -> None:
    """Print both checkouts' figures and their ratio; exit 1 if a row misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="another checkout")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    trees = {"before": options.before.resolve(), "now": ROOT}
    figures: dict[str, dict[str, list[float]]] = {}

    def note(row: str, tree: str, seconds: float) -> None:
        figures.setdefault(row, {}).setdefault(tree, []).append(seconds)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        homes = {tree: Path(folder) / tree for tree in trees}
        for home in homes.values():
            run = fill(home, options.runs)
        for number in range(options.rounds):
            order = list(trees) if number % 2 == 0 else list(trees)[::-1]
            for tree in order:
                for module in IMPORTS:
                    note(f"import {module}", tree, cpu_seconds(trees[tree], homes[tree], ["-c", f"import {module}"]))
                note("isoviz --help", tree, cpu_seconds(trees[tree], homes[tree], ["-m", "isoviz", "--help"]))
                note(
                    "isoviz runs list --json",
                    tree,
                    cpu_seconds(trees[tree], homes[tree], ["-m", "isoviz", "runs", "list", "--json"]),
                )
            for tree in order:
                arguments = ["-c", RERUNS, str(trees[tree]), run, *PAGES]
                reply = call(trees[tree], homes[tree], arguments).stdout.strip().splitlines()[-1]
                for page, seconds in json.loads(reply).items():
                    note(f"rerun of {page}, {options.runs} runs", tree, seconds)
    table = Table("This checkout against the other", ["", "before", "now", "now / before"])
    slower = []
    for row, trees_seconds in figures.items():
        before, now = (statistics.median(trees_seconds[tree]) for tree in ("before", "now"))
        ratio = statistics.median(b / a for a, b in zip(trees_seconds["before"], trees_seconds["now"], strict=True))
        table.rows.append([row, f"{1000 * before:.0f} ms", f"{1000 * now:.0f} ms", f"{ratio:.2f}"])
        if ratio > BAR and now - before > 0.005:
            slower.append(row)
    print(table.text())
    if slower:
        sys.exit(f"\nslower than {BAR} times: {', '.join(slower)}")


def fill(home: Path, runs: int) -> str:
    """A store with so many finished runs of the old format; the id of one."""
    home.mkdir(parents=True)
    dump = (ROOT / "tests" / "old_store" / "store.sql").read_text().replace("{ASSETS}", str(home))
    with sqlite3.connect(home / "isoviz.db") as database:
        database.executescript(dump)
        columns = [row[1] for row in database.execute("PRAGMA table_info(isoviz_runs)")]
        finished = database.execute("SELECT * FROM isoviz_runs WHERE status = 'finished'").fetchall()
        events = {
            row[0]: database.execute("SELECT seq, time, body FROM isoviz_events WHERE run_id = ?", row[:1]).fetchall()
            for row in finished
        }
        for number in range(runs - len(finished)):
            record = dict(zip(columns, finished[number % len(finished)], strict=True))
            source, record["id"] = record["id"], f"{record['id'][:11]}-{number:04d}"
            record["config"] = json.dumps({**json.loads(record["config"]), "seed": 10 + number})
            marks = ", ".join("?" * len(record))
            database.execute(f"INSERT INTO isoviz_runs ({', '.join(record)}) VALUES ({marks})", list(record.values()))
            rows = [(record["id"], *event) for event in events[source]]
            database.executemany("INSERT INTO isoviz_events (run_id, seq, time, body) VALUES (?, ?, ?, ?)", rows)
    database.close()
    return str(finished[0][0])


def call(tree: Path, home: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Python in a checkout."""
    env = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "ISOVIZ_HOME": str(home),
        "ISOVIZ_RUNNER": "off",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run([sys.executable, *arguments], cwd=tree, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tree}: {' '.join(arguments)[:60]} …\n{done.stderr[-3000:]}")
    return done


def cpu_seconds(tree: Path, home: Path, arguments: list[str]) -> float:
    """Processor seconds of one process with its children."""
    began = os.times()
    call(tree, home, arguments)
    ended = os.times()
    return ended.children_user + ended.children_system - began.children_user - began.children_system


if __name__ == "__main__":
    main()
