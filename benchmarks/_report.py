"""What a benchmark leaves behind: tables on the screen and in a section of `benchmarks.md`, with the machine they come from."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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


def literal(text: str) -> str:
    """The text as Markdown that shows it: the star of IsoScore* starts no emphasis, a bar no cell."""
    return text.replace("*", "\\*").replace("|", "\\|")


def machine(packages: Sequence[str], threads: str) -> str:
    """One line on the processor, its cores, the libraries and the date; `threads` says how many were used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = [f"{name} {_version(name)}" for name in packages]
    parts = [f"{processor()}, {cores} cores, {threads}", f"Python {platform.python_version()}", *versions]
    return f"{'; '.join(parts)}; {date.today().isoformat()}."


def _version(package: str) -> str:
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
