"""A server that many visitors use and leave: memory, open files, threads, temporary files and the store against time.

    python benchmarks/soak.py [--minutes 60] [--visitors 30] [--students 40] [--calls 10000] [--out docs]

A class opens its pages at once and works while another visitor opens pages; then all leave, and nobody comes. After that, visitors
without a browser open pages, upload, move What-if, look at Explore, launch short runs and leave. After a third of the time a worker
is killed, after two thirds the app, which starts again on the same store. Each figure is sampled thirty times; its slope is that of a
line through the samples of one life of the app, without the first quarter. At the end programs call the HTTP API and the MCP server.
Exit code 1 if a bar is missed. The machine should do nothing else.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from _report import Table, finish, machine, options

from isoviz.access import links
from isoviz.access.visitors import Role
from tests.browser.conftest import Server, start
from tests.fuzzing import sessions

OWN = {"ruler_set": "Your own vectors or texts"}
RUN = {"method": ["baseline"], "settings": {"max_train": 64, "max_eval": 64, "epochs": 1, "threads": 1}, "repeat": True}
TABLE = "text,label\n" + "\n".join(f"Sentence {row} about topic {row % 7},{row % 7}" for row in range(300))
FIGURES = {"memory, MB": 150, "open files": 10, "threads": 4, "temporary files": 5, "store without runs, MB": 20}
"""What is sampled, and the bar for its slope per hour."""
LEAVING = 150
"""Seconds after which closed pages are gone: two minutes for reconnection, and the next look."""


class App:
    """The server, which may be killed and started again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.begin()

    def begin(self) -> None:
        settings = {
            "ISOVIZ_NO_TOKEN": "",
            "ISOVIZ_API_WRITES": "1",
            "ISOVIZ_EXAMPLES": "on",
            "TMPDIR": str(self.home / "tmp"),
        }
        (self.home / "tmp").mkdir(exist_ok=True)
        self.server: Server = start(self.home, runner="on", **settings)
        self.process = psutil.Process(self.server.process.pid)
        self.secret = links.read(self.server.store.folder).secrets[Role.RUNNER]

    def visitor(self) -> sessions.Visitor:
        return sessions.by_link(self.server.url, self.secret)

    def api(self, operation: str, arguments: dict[str, Any]) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.secret}"}
        return httpx.post(f"{self.server.url}/isoviz/api/{operation}", json=arguments, headers=headers, timeout=60)

    def sample(self) -> list[float]:
        """One value for each of `FIGURES`."""
        kept = [path for path in self.home.rglob("*") if path.is_file() and "runs" not in path.parts]
        incoming = [path for path in (self.home / "uploads").glob(".*") if path.is_dir()]
        temporary = sum(path.is_file() for path in (self.home / "tmp").rglob("*")) + len(incoming)
        used = [self.process.memory_info().rss / 1e6, self.process.num_fds(), self.process.num_threads()]
        return [*used, temporary, sum(path.stat().st_size for path in kept) / 1e6]

    def busy(self, seconds: float = 2.0) -> float:
        """Share of a core that the app and its processes use."""
        family = [self.process, *self.process.children(recursive=True)]

        def spent() -> float:
            total = 0.0
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    total += sum(one.cpu_times()[:2])
            return total

        before = spent()
        time.sleep(seconds)
        return (spent() - before) / seconds


def whatif(chance: random.Random) -> dict[str, str]:
    """An address of What-if that was not asked before."""
    return {"whatif_from": "Vectors or texts", "chain": f"zca:strength={chance.random():.4f}"}


def visit(app: App, chance: random.Random, done: Counter[str]) -> None:
    """One visitor's stay: a few pages, each with something to do."""
    visitor = app.visitor()
    for act in chance.sample(["open", "upload", "whatif", "explore", "launch"], 3):
        if act == "open":
            visitor.check((chance.choice(["home", "live", "results", "papers", "methods", "train"]), {}))
        elif act == "upload":
            with visitor.opened("ruler", OWN) as page:
                answer, file = visitor.upload(page, f"{TABLE}\nlast {chance.random()},0\n".encode())
                assert answer.status_code == 204, answer.text
                page.run(OWN, {page.uploads[0]: file})
        elif act == "whatif":
            with visitor.opened("whatif", whatif(chance)) as page:
                for _ in range(3):
                    page.run(whatif(chance))
        elif act == "explore":
            visitor.check(("explore", {"explore_layer": str(chance.randint(0, 4)), "explore_map": "PCA"}))
        elif app.server.store.counts()["queued"] < 5:
            assert app.api("launch_runs", RUN).status_code == 200
        done[act] += 1


def soak(app: App, minutes: float, visitors: int, done: Counter[str]) -> list[list[list[float]]]:
    """Samples (seconds, *figures) of each life of the app, while visitors come and go."""
    end, killing = threading.Event(), threading.Event()

    def keep_coming(number: int) -> None:
        chance = random.Random(number)
        while not end.wait(chance.uniform(1, 10)):
            try:
                visit(app, chance, done)
            except Exception as error:
                done["cut off by a kill" if killing.is_set() else f"{type(error).__name__}: {error}"[:200]] += 1

    lives: list[list[list[float]]] = [[]]
    with ThreadPoolExecutor(visitors) as crowd:
        for number in range(visitors):
            crowd.submit(keep_coming, number)
        began, step = time.monotonic(), minutes * 60 / 3
        for third in range(3):
            for tick in range(10):
                time.sleep(max(0.0, began + step * (third + (tick + 1) / 10) - time.monotonic()))
                lives[-1].append([time.monotonic() - began, *app.sample()])
            killing.set()
            if third == 0 and (workers := app.process.children(recursive=True)):
                workers[-1].kill()
            elif third == 1:
                app.process.kill()
                app.begin()
                lives.append([])
            killing.clear()
        end.set()
    return lives


def slopes(life: list[list[float]]) -> list[float]:
    """Of each figure per hour, without the first quarter."""
    kept = np.array(life[len(life) // 4 :])
    return [float(np.polyfit(kept[:, 0] / 3600, kept[:, column], 1)[0]) for column in range(1, kept.shape[1])]


def of_class(app: App, students: int) -> tuple[list[float], list[float]]:
    """Seconds in which another visitor's pages open: while a class opens its own at once, and while it works."""
    ready, end = threading.Barrier(students + 1), threading.Event()

    def student(number: int) -> None:
        chance, visitor = random.Random(1000 + number), app.visitor()
        ready.wait()
        with visitor.opened("whatif", whatif(chance)) as page:
            ready.wait()
            while not end.wait(chance.uniform(2, 8)):
                page.run(whatif(chance))

    def other(until: Callable[[], bool]) -> list[float]:
        taken: list[float] = []
        while not until():
            began = time.monotonic()
            visitor.check((("home", "results", "methods", "papers")[len(taken) % 4], {}))
            taken.append(time.monotonic() - began)
        return taken

    visitor = app.visitor()
    with ThreadPoolExecutor(students) as crowd:
        for number in range(students):
            crowd.submit(student, number)
        ready.wait()
        arriving = other(lambda: ready.n_waiting == students)
        ready.wait()
        began = time.monotonic()
        working = other(lambda: time.monotonic() - began > 60)
        end.set()
    return arriving, working


async def by_mcp(home: Path, calls: int) -> float:
    """Megabytes by which `isoviz mcp` grows from its first hundred calls to its last."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    arguments = ["-m", "isoviz", "mcp", "--store", str(home)]
    others = set(psutil.Process().children())
    async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))) as client:
        (server,) = set(psutil.Process().children()) - others
        for call in range(calls):
            await client.call_tool(*(("list_runs", {"limit": 5}), ("catalogue", {"kind": "methods"}))[call % 2])
            if call == min(100, calls - 1):
                before = server.memory_info().rss
        return (server.memory_info().rss - before) / 1e6


def main() -> int:
    parser = options(__doc__)
    for name, default in (("minutes", 60), ("visitors", 30), ("students", 40), ("calls", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    done: Counter[str] = Counter()
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        app = App(Path(folder))
        for number in range(3):
            visit(app, random.Random(number), done)
        time.sleep(LEAVING)
        before = app.sample()
        arriving, working = of_class(app, chosen.students)
        began = time.monotonic()
        while app.busy() > 0.1 and time.monotonic() - began < LEAVING:
            pass
        rows.append(("after a class: seconds until the processor is idle", time.monotonic() - began, 30))
        time.sleep(max(0.0, began + LEAVING - time.monotonic()))
        left = np.subtract(app.sample(), before)
        rows += [(f"after a class: {name}", left[at], FIGURES[name]) for at, name in enumerate(FIGURES) if at < 2]
        for what, taken in (("opens", arriving), ("works", working)):
            rows.append((f"while a class {what}: another visitor's page, p95, s", float(np.quantile(taken, 0.95)), 2))
        lives = soak(app, chosen.minutes, chosen.visitors, done)
        worst = np.max([slopes(life) for life in lives], axis=0)
        rows += [(f"{name}, per hour", worst[at], bar) for at, (name, bar) in enumerate(FIGURES.items())]
        memory = app.process.memory_info().rss
        for _ in range(chosen.calls):
            app.api("list_runs", {"limit": 5}).raise_for_status()
        grown = (app.process.memory_info().rss - memory) / 1e6
        rows.append((f"{chosen.calls:,} calls of the HTTP API: memory, MB", grown, 50))
        rows.append((f"{chosen.calls:,} calls of MCP: memory, MB", asyncio.run(by_mcp(app.home, chosen.calls)), 50))
        app.server.end()
    figures = Table(
        "Figures", ["", "measured", "bar"], [[name, f"{value:.2f}", f"{bar:g}"] for name, value, bar in rows]
    )
    figures.notes.append("Done: " + ", ".join(f"{count:,} × {what}" for what, count in done.most_common()) + ".")
    curve = Table("Against time", ["minute", *FIGURES])
    curve.rows = [[f"{row[0] / 60:.0f}", *(f"{value:.0f}" for value in row[1:])] for life in lives for row in life[::2]]
    missed = [f"{name}: {value:.2f} (bar {bar:g})" for name, value, bar in rows if value > bar]
    about = machine(
        ["streamlit"], f"{chosen.visitors} visitors for {chosen.minutes} minutes, a class of {chosen.students}"
    )
    return finish(chosen, "soak", "## Visitors who come and go", about, missed, figures, curve)


if __name__ == "__main__":
    sys.exit(main())
