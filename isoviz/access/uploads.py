"""Task data that a visitor uploads: kept below the store's folder by content, so that a run can be repeated from it."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from isoviz import demo, vectors
from isoviz.errors import DataError, InputError
from isoviz.fence import Roots
from isoviz.jobs import guarded
from isoviz.jobs.results import FACTS
from isoviz.tasks.files import SPLITS, SUFFIXES
from isoviz.tasks.protocol import TRAIN, Task
from isoviz.vectors import sets
from isoviz.vectors.intake import ImportRequest, SetSummary

FOLDER = "uploads"
_VISITOR = ".visitor"
"""In the folder of an upload: who kept it."""

Files = Mapping[str, tuple[str, bytes | memoryview]]
"""Split → (file name as uploaded, content). Of the name only the ending is used."""

Loose = Mapping[str, tuple[str, bytes | memoryview]]
"""Role (`file`, `beside`, `relations`) → (file name as uploaded, content)."""


@dataclass(frozen=True)
class Allowance:
    """Whose uploads count together.

    Attributes:
        visitor: their id.
        exceeded: from the megabytes that all their uploads would have to why that is too much, or None.
    """

    visitor: str
    exceeded: Callable[[int], str | None]


def roots(named: tuple[Path, ...], store_folder: Path) -> Roots:
    """Below which the browser's data and models lie: folders that the operator named, uploads, and what comes with the package."""
    return Roots(named, (store_folder / FOLDER, demo.FOLDER))


def save(
    store_folder: Path,
    task: Task,
    files: Files,
    allowance: Allowance | None = None,
    pulse: Callable[[], None] = lambda: None,
) -> Path:
    """Check uploaded splits and keep them; the same content gives the same folder, and nothing bad is kept.

    Args:
        store_folder: the store's folder.
        task: what the rows are for.
        files: both splits.
        allowance: of the visitor who uploads; None: without limit.
        pulse: raises once no one waits any more (`isoviz.jobs.guarded.call`, in which the files are read).

    Returns:
        The folder with `train` and `validation`.

    Raises:
        InputError: a split is missing, its ending is unknown, its rows cannot serve the task, or they exceed a limit.
    """

    def check(folder: Path) -> None:
        arguments = {"slug": task.slug, "columns": task.own, "data": str(folder)}
        guarded.call("isoviz.tasks.reading:check", arguments, str, pulse=pulse)

    return _keep(store_folder, files, SPLITS, check, allowance)


def save_own(
    store_folder: Path, files: Files, allowance: Allowance | None = None, pulse: Callable[[], None] = lambda: None
) -> Path:
    """Keep a person's own files, `train` and perhaps `validation`: tables, whose rows are looked at when columns are chosen.

    Arguments as for `save`.

    Raises:
        InputError: there is no training file, an ending is unknown, a file is no table with rows, or it exceeds a limit.
    """
    splits = [TRAIN, *(split for split in SPLITS if split in files and split != TRAIN)]

    def check(folder: Path) -> None:
        guarded.call("isoviz.tasks.reading:check_tables", {"folder": str(folder)}, None, pulse=pulse)

    return _keep(store_folder, files, splits, check, allowance)


def save_vectors(
    store_folder: Path,
    order: ImportRequest,
    files: Loose,
    allowance: Allowance | None = None,
    pulse: Callable[[], None] = lambda: None,
) -> SetSummary:
    """Read uploaded vectors or texts, or those that the order names by path, and keep them by their content.

    The uploaded files themselves go once they have been read.

    Args:
        order: what to read; files that came with it take the place of its paths.
        files: `file`, `beside` and `relations`, those that were uploaded.

    Raises:
        InputError: as `isoviz.vectors.read`, with the field of the file.
    """
    if len(files.get("file", ("", b""))[1]) > sets.MOST_KEPT:  # of a larger file only the place is kept
        raise InputError(
            f"vectors: an upload has at most {sets.MOST_KEPT / 2**30:.1f} GiB",
            field="vectors",
            advice="Put the file in a folder on this server and give its path.",
        )
    root = store_folder / FOLDER
    root.mkdir(parents=True, exist_ok=True)
    incoming = Path(tempfile.mkdtemp(dir=root, prefix=".incoming-"))
    try:
        if allowance is not None:
            (incoming / _VISITOR).write_text(allowance.visitor, encoding="utf-8")
        total = sum(math.ceil(len(content) / 1e6) for _, content in files.values())
        if allowance is not None and (reason := allowance.exceeded(total)):  # what it holds is counted below
            raise DataError(reason, field="vectors")
        placed = {}
        for role, (name, content) in files.items():
            folder = incoming / role
            folder.mkdir()
            placed[role] = str(folder / f"upload{Path(name).suffix.lower()}")
            Path(placed[role]).write_bytes(content)
        wanted = replace(
            order,
            file=placed.get("file", order.file),
            beside=placed.get("beside"),
            relations=placed.get("relations"),
            name=order.name or files.get("file", ("",))[0],
        )
        began = time.time()
        summary: SetSummary = guarded.call(
            "isoviz.vectors.intake:import_file", {"request": wanted}, SetSummary, field="vectors", pulse=pulse
        )
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    if allowance is not None:
        _charge(summary.key, allowance, store_folder, began)
    return summary


def _charge(key: str, allowance: Allowance, store_folder: Path, began: float) -> None:
    """Count a kept set for a visitor; `DataError` if that is too much, and then a set that is new goes."""
    owners = _owners_file(key)
    folder = owners.parent
    others = set(_owners(owners)) - {allowance.visitor}
    with owners.open("a", encoding="utf-8") as stream:  # first: of two sets at the same moment each counts the other
        stream.write(f"{allowance.visitor}\n")
    reason = allowance.exceeded(megabytes_of(store_folder, allowance.visitor))
    if reason is None:
        return
    if others or (folder / FACTS).stat().st_mtime < began:  # someone else keeps the same
        release(key, allowance.visitor)
    else:
        vectors.forget(key)
    raise DataError(reason, field="vectors")


def owners_of(key: str) -> set[str]:
    """The visitors who keep a set."""
    return set(_owners(_owners_file(key)))


def release(key: str, visitor: str) -> None:
    """Take a visitor's claim off a kept set."""
    others = sorted(owners_of(key) - {visitor})
    _owners_file(key).write_text("".join(f"{other}\n" for other in others), encoding="utf-8")


def _owners_file(key: str) -> Path:
    return vectors.STORE.root / "results" / key / _VISITOR


def _owners(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def megabytes_of(store_folder: Path, visitor: str) -> int:
    """What one visitor's uploads and kept vectors and texts take, rounded up."""
    total = 0
    for folder in (*(store_folder / FOLDER).glob("*/"), *(vectors.STORE.root / "results").glob("*/")):
        with contextlib.suppress(OSError):  # another upload that is refused goes at this moment
            if visitor in _owners(folder / _VISITOR):
                total += sum(path.stat().st_size for path in folder.iterdir())
    return math.ceil(total / 1e6)


def _keep(
    store_folder: Path,
    files: Files,
    splits: Sequence[str],
    check: Callable[[Path], object],
    allowance: Allowance | None,
) -> Path:
    suffixes = {split: _suffix(split, files, splits) for split in splits}
    digest = hashlib.sha256()
    for split in splits:
        digest.update(f"{split}{suffixes[split]}\0".encode())
        digest.update(hashlib.sha256(files[split][1]).digest())
    root = store_folder / FOLDER
    final = root / digest.hexdigest()[:16]
    if not final.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=root, prefix=".incoming-"))
        try:
            if allowance is not None:  # first: of two uploads at the same moment each counts the other
                (partial / _VISITOR).write_text(allowance.visitor, encoding="utf-8")
            for split in splits:
                (partial / f"{split}{suffixes[split]}").write_bytes(files[split][1])
            if allowance is not None:
                reason = allowance.exceeded(megabytes_of(store_folder, allowance.visitor))
                if reason is not None:
                    raise DataError(reason, field="data")
            check(partial)
            _move(partial, final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    else:
        check(final)  # kept for another task, perhaps
    return final


def _suffix(split: str, files: Files, splits: Sequence[str]) -> str:
    if split not in files:
        raise DataError(f"data: the {split} file is missing (needed: {' and '.join(splits)})", field="data")
    suffix = Path(files[split][0]).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"data: the {split} file ends in '{suffix or 'nothing'}' (allowed: {', '.join(SUFFIXES)})", field="data"
        )
    return suffix


def _move(partial: Path, final: Path) -> None:
    try:
        os.replace(partial, final)
    except OSError:  # another visitor uploaded the same at the same moment
        if not final.is_dir():
            raise
