"""A server that many visitors use and leave: memory, open files, threads, temporary files and the store against time.

    python benchmarks/soak.py [--minutes 60] [--visitors 30] [--students 40] [--calls 10000] [--out docs]

A class opens its pages at once and works while another visitor opens pages; then all leave, and nobody comes. After that, visitors
without a browser open pages, upload, move What-if, look at Explore, launch short runs and leave. After a third of the time a worker
is killed, after two thirds the app, which starts again on the same store. Figures are sampled thirty times, the slope is that of a
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import numpy as np
import psutil
from _report import Table, finish, machine, options
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from isoviz.operations.access import links
from isoviz.operations.access.visitors import Role
from tests.browser.conftest import start
from tests.fuzzing import sessions

SETTINGS = {"ISOVIZ_NO_TOKEN": "", "ISOVIZ_API_WRITES": "1", "ISOVIZ_EXAMPLES": "on"}
OWN = {"ruler_set": "Your own vectors or texts"}
RUN = {"method": ["baseline"], "settings": {"max_train": 64, "max_eval": 64, "epochs": 1, "threads": 1}, "repeat": True}
TABLE = "text,label\n" + "\n".join(f"Sentence {row} about topic {row % 7},{row % 7}" for row in range(300))
FIGURES = {"memory, MB": 150, "open files": 10, "threads": 4, "temporary files": 5, "store without runs, MB": 20}
LEAVING = 150  # seconds after which closed pages are gone: two minutes for reconnection, and the next look


class App:
    """The server, which may be killed and started again."""

    def begin(self, home: Path) -> None:
        (home / "tmp").mkdir(exist_ok=True)
        self.server, self.home = start(home, runner="on", TMPDIR=str(home / "tmp"), **SETTINGS), home
        self.process = psutil.Process(self.server.process.pid)
        self.secret = links.read(self.server.store.folder).secrets[Role.RUNNER]

    def api(self, operation: str, arguments: dict[str, object]) -> None:
        headers, url = {"Authorization": f"Bearer {self.secret}"}, f"{self.server.url}/isoviz/api/{operation}"
        httpx.post(url, json=arguments, headers=headers, timeout=sessions.PATIENCE).raise_for_status()

    def sample(self) -> list[float]:
        """One value for each of `FIGURES`."""
        temporary, size = 0, 0
        for path in (Path(folder, name) for folder, _, names in os.walk(self.home) for name in names):
            with suppress(OSError):
                temporary += path.is_relative_to(self.home / "tmp") or path.name.startswith(".incoming")
                size += path.stat().st_size * ("runs" not in path.parts)
        used = [self.process.memory_info().rss / 1e6, self.process.num_fds(), self.process.num_threads()]
        return [*used, temporary, size / 1e6]


def whatif(chance: random.Random) -> dict[str, str]:
    return {"whatif_from": "Vectors or texts", "chain": f"zca:strength={chance.random():.4f}"}  # not asked before


def visit(app: App, chance: random.Random, done: Counter[str], acts: int = 3) -> None:
    """One visitor's stay: a few pages, each with something to do."""
    visitor = sessions.by_link(app.server.url, app.secret)
    for act in chance.sample(["open", "upload", "whatif", "explore", "launch"], acts):
        if act == "open":
            visitor.check((chance.choice(["home", "live", "results", "papers", "methods", "train"]), {}))
        elif act == "upload":
            with visitor.opened("ruler", OWN) as page:
                _, file = visitor.upload(page, f"{TABLE}\nlast {chance.random()},0\n".encode())
                page.run(OWN, {page.uploads[0]: file})
        elif act == "whatif":
            visitor.check(("whatif", whatif(chance)))
        elif act == "explore":
            visitor.check(("explore", {"explore_layer": str(chance.randint(0, 4)), "explore_map": "PCA"}))
        elif app.server.store.counts()["queued"] < 5:
            app.api("launch_runs", RUN)
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
                done["cut off by a kill" if killing.is_set() else repr(error)[:200]] += 1

    lives: list[list[list[float]]] = [[]]
    with ThreadPoolExecutor(visitors) as crowd, ExitStack() as leaving:
        leaving.callback(end.set)
        _ = [crowd.submit(keep_coming, number) for number in range(visitors)]
        began = time.monotonic()
        for tick in range(1, 31):
            time.sleep(max(0.0, began + tick * minutes * 2 - time.monotonic()))
            lives[-1].append([time.monotonic() - began, *app.sample()])
            killing.set()
            if tick == 10 and (workers := app.process.children(recursive=True)):
                workers[-1].kill()
            elif tick == 20:
                app.process.kill()
                app.begin(app.home)
                lives.append([])
            killing.clear()
    return lives


def of_class(app: App, students: int) -> list[list[float]]:
    """Seconds in which another visitor's pages open: while a class opens its own, and while it moves sliders for a minute."""
    end, visitor = threading.Event(), sessions.by_link(app.server.url, app.secret)

    def student(number: int) -> None:
        chance = random.Random(1000 + number)
        with visitor.opened("whatif", whatif(chance)) as page:
            while not end.wait(chance.uniform(2, 8)):
                page.run(whatif(chance))

    taken = list[list[float]]()
    with ThreadPoolExecutor(students) as crowd:
        present = [crowd.submit(student, number) for number in range(students)]
        for seconds in (10, 60):
            began, taken = time.monotonic(), [*taken, []]
            while (now := time.monotonic()) - began < seconds:
                visitor.check((("home", "results", "methods", "papers")[len(taken[-1]) % 4], {}))
                taken[-1].append(time.monotonic() - now)
        end.set()
        _ = [one.result() for one in present]
    return taken


async def by_mcp(home: Path, calls: int) -> float:
    """Megabytes by which `isoviz mcp` grows from its first hundred calls to its last."""
    others, memory = set(psutil.Process().children()), list[int]()
    arguments = ["-m", "isoviz", "mcp", "--store", str(home)]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))) as client:
        (server,) = set(psutil.Process().children()) - others
        for call in range(calls):
            await client.call_tool(*(("list_runs", {"limit": 5}), ("catalogue", {"kind": "methods"}))[call % 2])
            memory.append(server.memory_info().rss)
        return (memory[-1] - memory[min(100, calls - 1)]) / 1e6


def stayed(when: str, app: App, before: list[float]) -> list[tuple[str, float, float]]:
    """Memory and open files beyond those of a server whose pages had one visitor."""
    left = np.subtract(app.sample(), before)
    return [(f"{when}: {name}", left[at], FIGURES[name]) for at, name in enumerate(FIGURES) if at < 2]


def main() -> int:
    parser = options(__doc__)
    for name, default in (("minutes", 60), ("visitors", 30), ("students", 40), ("calls", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen, done, rows = parser.parse_args(), Counter[str](), list[tuple[str, float, float]]()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        app = App()
        app.begin(Path(folder))
        visit(app, random.Random(0), done, acts=5)  # what a page's first use loads stays
        time.sleep(LEAVING)
        before = app.sample()
        for what, taken in zip(("arrives", "works"), of_class(app, chosen.students), strict=True):
            rows.append((f"a class {what}: another visitor's page, p95, s", float(np.quantile(taken, 0.95)), 2))
        left_at = idle_at = time.monotonic()
        while app.process.cpu_percent(2) > 10 and idle_at - left_at < LEAVING:
            idle_at = time.monotonic()
        rows.append(("a class has left: seconds until the processor is idle", idle_at - left_at, 30))
        time.sleep(LEAVING)
        rows += stayed("a class has left", app, before)
        lives = soak(app, chosen.minutes, chosen.visitors, done) if chosen.minutes else []
        for at, (name, bar) in enumerate(FIGURES.items() if lives else (), start=1):
            late = [np.array(life[len(life) // 4 :]).T for life in lives]
            rows.append((f"{name}, per hour", max(np.polyfit(life[0] / 3600, life[at], 1)[0] for life in late), bar))
        time.sleep(LEAVING if lives else 0)
        rows += stayed("all have left", app, before) if lives else []
        used = app.sample()[0]
        for _ in range(chosen.calls):
            app.api("list_runs", {"limit": 5})
        rows.append((f"{chosen.calls:,} calls of the HTTP API: memory, MB", app.sample()[0] - used, 50))
        rows.append((f"{chosen.calls:,} calls of MCP: memory, MB", asyncio.run(by_mcp(app.home, chosen.calls)), 50))
        app.server.end()
    figures = Table("Figures", ["", "measured", "bar"])
    figures.rows = [[what, f"{value:.2f}", f"{bar:g}"] for what, value, bar in rows]
    figures.notes.append("Done: " + ", ".join(f"{count:,} × {what}" for what, count in done.most_common()) + ".")
    curve = Table("Against time", ["minute", *FIGURES])
    curve.rows = [[f"{row[0] / 60:.0f}", *(f"{value:.0f}" for value in row[1:])] for life in lives for row in life[::2]]
    missed = [f"{what}: {value:.2f} (bar {bar:g})" for what, value, bar in rows if value > bar]
    about = machine(["streamlit"], f"{chosen.visitors} visitors, a class of {chosen.students}")
    return finish(chosen, "soak", "## Visitors who come and go", about, missed, figures, curve)


if __name__ == "__main__":
    sys.exit(main())
