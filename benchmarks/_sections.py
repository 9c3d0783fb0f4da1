"""Sections of a benchmark, one after another, each in a process of its own with a share of the time.

A section runs in a process forked before anything has opened the device. What one leaves of its time, the next ones get. One that fails
or is stopped takes no other down.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import torch
from _report import ROOT, Table, publish, version_of

from isoviz import devices

Row = dict[str, Any]
Rows = Iterator[Row]
FORK = multiprocessing.get_context("fork")
VERDICTS = {True: "met", False: "missed", None: ""}
PACKAGES = ("torch", "transformers", "accelerate", "sentence-transformers", "numpy")


@dataclass(frozen=True)
class Work:
    """What a section is given: a folder, whether sizes are tiny, whether the device is the simulated one, when it must end."""

    folder: Path
    quick: bool
    simulated: bool
    until: float

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.monotonic()

    @property
    def device(self) -> torch.device:
        return devices.current()

    @property
    def precision(self) -> Any:
        return "bf16" if self.device.type == "cuda" else "no"

    def speed(self, name: str, value: float, bar: str = "", unit: str = "") -> Row:
        """A row whose bar is judged at full size only."""
        return row(name, value, "" if self.quick else bar, unit)


def row(name: str, value: float | str, bar: str = "", unit: str = "") -> Row:
    """A number and its bar, such as `≤ 1.1`; without one, nothing is judged."""
    ok = None if not bar else bool(value <= float(bar[1:]) if bar[0] == "≤" else value >= float(bar[1:]))
    return {"name": name, "value": value, "unit": unit, "bar": bar, "ok": ok}


class Section(NamedTuple):
    """What yields the rows, its share of the time, and the title of its table."""

    rows: Callable[[Any], Rows]
    share: int
    title: str


def run(sections: dict[str, Section], file: Path, budget: float, work: Callable[..., Work]) -> int:
    """Run the sections; 1 if one failed or a bar is missed. The record goes into `file`, its tables beside it.

    Args:
        budget: seconds in all.
        work: makes what a section is given, from its folder and the time at which it must end.
    """
    versions = {"Python": platform.python_version(), **{name: version_of(name) for name in PACKAGES}}
    parts: dict[str, Any] = {}
    record = {"date": date.today().isoformat(), "versions": versions, "sections": parts}

    def save() -> None:
        draft = file.with_suffix(".part")
        draft.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
        draft.replace(file)

    until, left_shares = time.monotonic() + budget, sum(section.share for section in sections.values())
    for name, section in sections.items():
        parts[name] = part = {"rows": [], "seconds": 0.0, "end": "skipped: no time was left"}
        began = time.monotonic()
        if (left := until - began) > 1:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                given = work(folder=Path(folder), until=began + left * section.share / left_shares)
                _run_section(name, section, part, given, save)
        left_shares -= section.share
        part["seconds"] = time.monotonic() - began
        save()
        print(f"{name}: {part['end']}, {part['seconds']:.0f} s", flush=True)
    judged = [row for part in parts.values() for row in part["rows"] if row["ok"] is not None]
    missed = [row["name"] for row in judged if not row["ok"]]
    about = f"{'; '.join(f'{name} {number}' for name, number in versions.items())}; {record['date']}."
    verdict = f"{len(judged) - len(missed)} of {len(judged)} bars are met.{f' Missed: {chr(59).join(missed)}.' if missed else ''}"
    publish(file.parent, file.stem, about, verdict, *_tables(sections, parts), page=f"{file.stem}.md")
    return int(bool(missed) or any(part["end"].startswith("failed") for part in parts.values()))


def _tables(sections: dict[str, Section], parts: dict[str, Any]) -> Iterator[Table]:
    for name, part in parts.items():
        lines = [[row["name"], shown(row), row["bar"], VERDICTS[row["ok"]]] for row in part["rows"]]
        notes = [] if part["end"] == "done" else [f"Not complete: {part['end']}."]
        yield Table(sections[name].title, ["", "value", "bar", "verdict"], lines, notes)


def _run_section(name: str, section: Section, part: dict[str, Any], work: Work, save: Callable[[], None]) -> None:
    """Its rows and its end go into `part`."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_child, args=(name, section, theirs, work))
    child.start()
    theirs.close()
    part["end"] = "stopped: its share of the time was spent"
    while ours.poll(max(0.0, work.left)):
        try:
            message = ours.recv()
        except EOFError:
            message = "failed: its process died"
        if isinstance(message, str):
            part["end"] = message
            break
        part["rows"].append(message)
        print(f"  {message['name']}: {shown(message)} {message['bar']} {VERDICTS[message['ok']]}", flush=True)
        save()
    with suppress(psutil.NoSuchProcess):
        _kill_below(child.pid)
    child.kill()
    child.join()


def _kill_below(pid: int | None) -> None:
    """All that a section started; a worker leads a process group of its own."""
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _child(name: str, section: Section, connection: Any, work: Work) -> None:
    os.chdir(work.folder)
    for variable in ("ISOVIZ_HOME", "HF_HOME", "TRITON_CACHE_DIR", "ISOVIZ_COMPARING_INPUTS"):
        os.environ[variable] = str(work.folder / variable)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        if work.simulated and name not in ("agree", "queue"):  # whose own processes load it, or do not know it
            from tests.devices import simulated

            simulated.load()
        for found in section.rows(work):
            connection.send(found)
        connection.send("done")
    except BaseException:
        traceback.print_exc()
        connection.send(f"failed: {traceback.format_exc().strip().splitlines()[-1][:300]}")
    _kill_below(os.getpid())
    os._exit(0)  # threads that the section left running must not keep it


def shown(found: Row) -> str:
    """The value of a row with its unit."""
    value = found["value"]
    if not isinstance(value, str):
        value = f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"
    return f"{value} {found['unit']}".strip()
