"""`isoviz doctor`: what is installed, which devices there are, whether disk and store are healthy, and what to do about problems."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from isoviz import __version__, limits
from isoviz.commands.options import StoreOption
from isoviz.commands.output import Answer
from isoviz.errors import DISTRIBUTION, IsoVizError, install, listed, one_line
from isoviz.home import home, store_url

State = Literal["ok", "note", "problem"]

LOW_GB: Final = 5.0
"""Free space below which a note says so: a run of a base encoder keeps up to 4 GB of checkpoints."""
FULL_GB: Final = 0.5
"""Free space below which nothing can be trained."""
FEW_PAGES: Final = 500
"""Open pages below which a note says so: a class of forty with several tabs each."""
_GB: Final = 1e9


@dataclass(frozen=True)
class Finding:
    """What was found.

    Attributes:
        about: what was looked at.
        state: `ok`; `note`, where something is missing that not everybody needs; or `problem`.
        text: the finding.
        advice: what to do about it; empty if nothing.
    """

    about: str
    state: State
    text: str
    advice: str = ""


def run(store: StoreOption = None) -> Answer:
    """Check this installation: packages, devices, disk, store and hub. Changes nothing; exit code 1 with a problem.

    Args:
        store: the store to check.
    """
    findings: list[Finding] = []
    for about, (package, check) in _CHECKS.items():
        if package and not find_spec(package):
            findings.append(Finding(about, "note", f"the package {package} is not installed", install("train")))
            continue
        try:
            findings += [Finding(about, *found) for found in check(store)]
        except (IsoVizError, OSError) as error:
            findings.append(Finding(about, "problem", str(error), getattr(error, "advice", None) or ""))
    problems = sum(finding.state == "problem" for finding in findings)
    width = max(len(about) for about in _CHECKS)
    lines = [
        f"{one.state:7}  {one.about:{width}}  {one_line(f'{one.text}. {one.advice}'.strip(), 1000)}" for one in findings
    ]
    lines.append(f"{problems} problem{'' if problems == 1 else 's'}")
    document = {"version": __version__, "problems": problems, "findings": [asdict(finding) for finding in findings]}
    return Answer(document, "\n".join(lines), code=int(problems > 0))


Found = Iterator[tuple[State, str] | tuple[State, str, str]]


def _versions(_: StoreOption) -> Found:
    yield "ok", f"isoviz {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    try:
        required = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield "note", "isoviz is not installed as a package, so its extras are not checked", "Install it with pip."
        return
    extras: dict[str, list[str]] = {}
    for requirement in required:
        package, extra = re.match(r"[\w.-]+", requirement), re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if package and package[0] != DISTRIBUTION:
            extras.setdefault(extra[1] if extra else "", []).append(package[0])
    versions = {name: _version(name) for names in extras.values() for name in names}
    yield "ok", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()) if version)
    for title, names in sorted(extras.items()):
        if missing := [name for name in names if not versions[name]]:
            yield "note", f"[{title}] lacks {listed(missing)}", install(title)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices(_: StoreOption) -> Found:
    from isoviz import devices

    found = devices.describe()
    for slot in found.slots:
        yield (
            "ok",
            f"{slot.name}: {slot.label}, {slot.memory / _GB:.0f} GB{', bf16' if found.on_gpu and found.bf16 else ''}",
        )


def _disk(_: StoreOption) -> Found:
    folders = {"ISOVIZ_HOME": home()}
    if find_spec("huggingface_hub"):
        from isoviz import hub

        folders["the hub's cache"] = hub.cache_folder()
    for name, folder in folders.items():
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        free = shutil.disk_usage(existing).free / _GB
        state: State = "problem" if free < FULL_GB else "note" if free < LOW_GB else "ok"
        advice = "" if state == "ok" else "Free some space, or choose another disk."
        yield state, f"{free:.1f} GB free for {name} ({folder})", advice
        if not os.access(existing, os.W_OK):
            yield "problem", f"{existing} cannot be written to by this account", f"Choose another folder for {name}."


def _files(_: StoreOption) -> Found:
    if (allowed := limits.open_files()) is None:
        return
    pages = allowed // limits.FILES_OF_PAGE
    text = f"{allowed:,} open files: the app can serve about {pages:,} open pages"
    if pages < FEW_PAGES:
        yield "note", text, "Raise the hard limit (`ulimit -Hn`), or LimitNOFILE of the service."
    else:
        yield "ok", text


def _store(option: StoreOption) -> Found:
    from isoviz.runs.store import Store

    url = store_url(option)
    if url.startswith("sqlite:"):
        file = Path(url.removeprefix("sqlite:///"))
        if not file.exists():
            yield "ok", f"{file} does not exist yet; the first run makes it"
            return
        try:
            with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=10)) as database:
                (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            answer = str(error)
        if answer != "ok":
            advice = "Restore it from a backup, or save what can be read with `sqlite3 FILE .recover`."
            yield "problem", f"{file} is damaged ({answer})", advice
            return
    opened = Store(option)
    try:
        runs = ", ".join(f"{count} {status}" for status, count in opened.counts().items() if count) or "no runs yet"
        yield "ok", f"{opened}: {runs}"
    finally:
        opened.close()


def _hub(_: StoreOption) -> Found:
    from isoviz import hub

    if reason := hub.offline():
        yield "note", reason, "Bundled, local and cached models and tasks work; name others by their folder."
    else:
        yield "ok", "the hub can be reached"


_CHECKS: Final[dict[str, tuple[str, Callable[[StoreOption], Found]]]] = {
    "packages": ("", _versions),
    "devices": ("torch", _devices),
    "disk": ("", _disk),
    "open files": ("", _files),
    "store": ("sqlalchemy", _store),
    "hub": ("huggingface_hub", _hub),
}
"""What is checked → the package that it needs, and the function."""
