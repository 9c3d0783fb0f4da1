"""Shared by the benchmarks: options, medians of contenders that take turns, tables, and sections of a docs page with the machine.

Importing it puts this checkout on the import path, so that a script also finds `tests` and `factory`.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

TITLE = """\
# Benchmarks

Each section is written by its script (`python benchmarks/NAME.py --out docs`); what stands between two markers is replaced by
the next run. Compare ratios, not milliseconds: the contenders of a row took turns in one process.
"""


@dataclass
class Table:
    """Cells as text; `notes` are sentences under it."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Aligned columns for a terminal."""
        widths = [max(len(row[i]) for row in [self.header, *self.rows]) for i in range(len(self.header))]
        lines = [self.header, ["-" * width for width in widths], *self.rows]
        body = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in lines]
        return "\n".join(["", self.title, *body, *self.notes])

    def markdown(self) -> str:
        """A table of a Markdown page, numbers to the right."""
        rule = ["---"] + ["---:"] * (len(self.header) - 1)
        lines = [[literal(cell) for cell in self.header], rule, *([literal(cell) for cell in row] for row in self.rows)]
        body = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([f"**{literal(self.title)}**", "", *body, *(f"\n{literal(note)}" for note in self.notes)])


def options(description: str | None, repeats: int = 0, out: str = "benchmarks.md") -> argparse.ArgumentParser:
    """A parser with `--out DIR`; with `repeats`, also `--repeats` and `--quick`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"write the section of DIR/{out}")
    if repeats:
        parser.add_argument("--repeats", type=int, default=repeats, help="timed calls per figure, at least 5")
        parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script; no bar is judged")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments; a record that is too poor for the documentation is refused."""
    chosen = parser.parse_args()
    if getattr(chosen, "repeats", 5) < 5:
        parser.error(f"--repeats: at least 5, got {chosen.repeats}")
    if getattr(chosen, "quick", False) and chosen.out and chosen.out.resolve() == ROOT / "docs":
        parser.error("--out: the documentation holds full runs only; give --quick another folder")
    return chosen


def medians(
    contenders: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median milliseconds of each, after one untimed call; they take turns, so that a slow moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(repeats):
        for name, run in contenders.items():
            start = clock()
            run()
            times[name].append((clock() - start) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def python(arguments: Sequence[str], tree: Path = ROOT, **variables: str) -> str:
    """What Python prints in a new process on a checkout, with these environment variables; ends the script if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "HF_HUB_OFFLINE": "1", **variables}
    done = subprocess.run([sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tree}: {' '.join(arguments)[:80]} …\n{done.stderr[-3000:]}")
    return done.stdout


def milliseconds(value: float) -> str:
    """Two to three significant digits, never in powers of ten."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.{2 if value >= 1 else 3}f}"


def publish(folder: Path | None, section: str, *parts: Table | str, page: str = "benchmarks.md") -> None:
    """Print the parts, and write them into a section of the page in a folder if there is one."""
    for part in parts:
        print(part.text() if isinstance(part, Table) else f"\n{part}", flush=True)
    if folder:
        texts = [part.markdown() if isinstance(part, Table) else part for part in parts]
        write_section(folder / page, section, "\n\n".join(texts))


def finish(
    chosen: argparse.Namespace, section: str, heading: str, about: str, missed: Sequence[str], *parts: Table | str
) -> int:
    """Publish a section that says which bars were missed; the exit status: 1 if a full run missed one."""
    quick = getattr(chosen, "quick", False)
    verdict = "quick sizes, no bar judged" if quick else "; ".join(missed) if missed else "all bars met"
    publish(chosen.out, section, heading, about, f"Bars: {verdict}.", *parts)
    return int(bool(missed) and not quick)


def literal(text: str) -> str:
    """The text as Markdown that shows it: the star of IsoScore* starts no emphasis, a bar no cell."""
    return text.replace("*", "\\*").replace("|", "\\|")


def machine(packages: Sequence[str], threads: str) -> str:
    """One line on the processor, its cores, the libraries and the date; `threads` says how many were used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = [f"{name} {version_of(name)}" for name in packages]
    parts = [f"{processor()}, {cores} cores, {threads}", f"Python {platform.python_version()}", *versions]
    return f"{'; '.join(parts)}; {date.today().isoformat()}."


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """The processor's name, from the system."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), flags=re.MULTILINE)
        if named:
            return named[1].strip()
    return platform.processor() or platform.machine()


def write_section(page: Path, name: str, body: str) -> None:
    """Put `body` between the markers of `name` on the page; at its end if there are none, on a new page if there is none."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{body.strip()}\n{end}"
    text = page.read_text(encoding="utf-8") if page.is_file() else TITLE
    if (begin in text) != (end in text):
        raise ValueError(f"{page}: one of the markers of '{name}' is missing")
    if begin in text:
        before, rest = text.split(begin, 1)
        text = before + section + rest.split(end, 1)[1]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
