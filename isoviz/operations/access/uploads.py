"""Task data uploaded by visitors: stored in the store's folder by content, so that runs can be repeated."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from isoviz import demo, vectors
from isoviz.allowed_paths import Roots
from isoviz.errors import DataError, InputError
from isoviz.home import make_private
from isoviz.jobs import guarded
from isoviz.jobs.results import FACTS
from isoviz.operations.access.policy import Policy
from isoviz.tables import catalogue
from isoviz.tasks.files import allowed, is_table
from isoviz.tasks.protocol import SPLITS, TRAIN, Task
from isoviz.vectors import sets
from isoviz.vectors.intake import ImportRequest, SetSummary

FOLDER = "uploads"
_VISITOR = ".visitor"
"""File in an upload's folder that lists its owners."""

Files = Mapping[str, tuple[str, bytes | memoryview]]
"""Split of a task, or role of a file with vectors (`file`, `beside`, `relations`, `questions`) → (its name, of which only the
extension is used, content)."""


@dataclass(frozen=True)
class Allowance:
    """A visitor's upload quota.

    Attributes:
        visitor: visitor id.
        exceeded: total megabytes → the reason why they exceed the quota, or None.
    """

    visitor: str
    exceeded: Callable[[int], str | None]


def private_folder(store_folder: Path) -> Path:
    """The folder of all uploads, created."""
    path = store_folder / FOLDER
    make_private(path)
    return path


def roots(policy: Policy, store_folder: Path) -> Roots:
    """What the browser may use: data and models in the operator's folders, uploads and bundled files; the operator's hosts."""
    return Roots(policy.roots or (), (store_folder / FOLDER, demo.FOLDER), policy.store_hosts)


def save(
    store_folder: Path,
    files: Files,
    task: Task | None = None,
    allowance: Allowance | None = None,
    pulse: Callable[[], None] = lambda: None,
) -> Path:
    """Check uploaded splits and store them if valid; the same content gives the same folder.

    Args:
        store_folder: the store's folder.
        files: the splits.
        task: the task of the rows, which needs both splits. None: a user's own tables, `train` and optionally `validation`, whose
            rows are checked later, when columns are selected.
        allowance: the visitor's quota; None: no limit.
        pulse: raises when the caller no longer waits (`isoviz.jobs.guarded.call` reads the files).

    Returns:
        The folder with the splits.

    Raises:
        InputError: a split is missing, has an unknown extension, is no table or has invalid rows, or exceeds a limit.
    """
    splits = SPLITS if task else [TRAIN, *(split for split in SPLITS if split in files and split != TRAIN)]
    suffixes = {split: _suffix(split, files, splits) for split in splits}
    digest = hashlib.sha256()
    for split in splits:
        digest.update(f"{split}{suffixes[split]}\0".encode())
        digest.update(hashlib.sha256(files[split][1]).digest())
    final = private_folder(store_folder) / digest.hexdigest()[:16]
    if final.is_dir():
        _check(final, task, pulse)  # it may have been stored for another task
        return final
    with _incoming(store_folder, allowance) as partial:
        for split in splits:
            (partial / f"{split}{suffixes[split]}").write_bytes(files[split][1])
        if allowance is not None and (reason := allowance.exceeded(megabytes_of(store_folder, allowance.visitor))):
            raise DataError(reason, field="data")
        _check(partial, task, pulse)
        try:
            os.replace(partial, final)
        except OSError:  # another visitor uploaded the same content concurrently
            if not final.is_dir():
                raise
    return final


@contextlib.contextmanager
def _incoming(store_folder: Path, allowance: Allowance | None) -> Iterator[Path]:
    """A folder for the files of an upload, deleted after use. It has its owner first, so that two simultaneous uploads count each other."""
    folder = Path(tempfile.mkdtemp(dir=private_folder(store_folder), prefix=".incoming-"))
    try:
        if allowance is not None:
            (folder / _VISITOR).write_text(allowance.visitor, encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check(folder: Path, task: Task | None, pulse: Callable[[], None]) -> None:
    if task is None:
        guarded.call("isoviz.tasks.reading:check_tables", {"folder": str(folder)}, None, pulse=pulse)
    else:
        guarded.call("isoviz.tasks.reading:check", {"task": task, "data": str(folder)}, str, pulse=pulse)


def save_vectors(
    store_folder: Path,
    request: ImportRequest,
    files: Files,
    allowance: Allowance | None = None,
    pulse: Callable[[], None] = lambda: None,
) -> SetSummary:
    """Read vectors or texts from an upload or a path, and store them by content.

    Uploaded files are deleted after reading.

    Args:
        request: what to read; uploaded files replace its paths.
        files: uploaded files by role: `file`, `beside`, `relations` and `questions`.

    Raises:
        InputError: like `isoviz.vectors.read`, with the field of the file.
    """
    if len(files.get("file", ("", b""))[1]) > sets.MOST_KEPT:  # of larger files only the path is stored
        raise InputError.at(
            "vectors",
            f"an upload has at most {sets.MOST_KEPT / 2**30:.1f} GiB",
            "Put the file in a folder on this server and enter its path.",
        )
    with _incoming(store_folder, allowance) as incoming:
        total = sum(math.ceil(len(content) / 1e6) for _, content in files.values())
        if allowance is not None and (reason := allowance.exceeded(total)):  # the set itself is counted below
            raise DataError(reason, field="vectors")
        placed = {}
        for role, (name, content) in files.items():
            (incoming / role).mkdir()
            placed[role] = str(incoming / role / _own_name(name))
            Path(placed[role]).write_bytes(content)
        title = request.name or files.get("file", ("",))[0]
        beside, relations, questions = (placed.get(role) for role in ("beside", "relations", "questions"))
        file = placed.get("file", request.file)
        local_request = replace(request, file=file, beside=beside, relations=relations, questions=questions, name=title)
        began = time.time()
        summary: SetSummary = guarded.call(
            "isoviz.vectors.intake:import_file", {"request": local_request}, SetSummary, field="vectors", pulse=pulse
        )
    if allowance is not None:
        _charge(summary.key, allowance, store_folder, began)
    return summary


def _charge(key: str, allowance: Allowance, store_folder: Path, began: float) -> None:
    """Count a stored set for a visitor. Raises `DataError`, and deletes a new set, if it exceeds the quota."""
    owners = _owners_file(key)
    folder = owners.parent
    others = set(_owners(owners)) - {allowance.visitor}
    with owners.open("a", encoding="utf-8") as stream:  # first, so that two simultaneous sets count each other
        stream.write(f"{allowance.visitor}\n")
    reason = allowance.exceeded(megabytes_of(store_folder, allowance.visitor))
    if reason is None:
        return
    if others or (folder / FACTS).stat().st_mtime < began:  # someone else owns the same set
        release(key, allowance.visitor)
    else:
        vectors.forget(key)
    raise DataError(reason, field="vectors")


def owners_of(key: str) -> set[str]:
    """The visitors who own a set."""
    return set(_owners(_owners_file(key)))


def release(key: str, visitor: str) -> None:
    """Remove a visitor's ownership of a stored set."""
    others = sorted(owners_of(key) - {visitor})
    _owners_file(key).write_text("".join(f"{owner}\n" for owner in others), encoding="utf-8")


def _owners_file(key: str) -> Path:
    return vectors.STORE.root / "results" / key / _VISITOR


def _owners(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def megabytes_of(store_folder: Path, visitor: str) -> int:
    """Megabytes of one visitor's uploads and stored sets, rounded up."""
    total = 0
    for folder in (*(store_folder / FOLDER).glob("*/"), *(vectors.STORE.root / "results").glob("*/")):
        with contextlib.suppress(OSError):  # a refused upload may be deleted concurrently
            if visitor in _owners(folder / _VISITOR):
                total += sum(path.stat().st_size for path in folder.iterdir())
    return math.ceil(total / 1e6)


def _suffix(split: str, files: Files, splits: Sequence[str]) -> str:
    if split not in files:
        raise DataError.at("data", f"the {split} file is missing (needed: {' and '.join(splits)})")
    suffix = catalogue.ending_of(files[split][0])
    if not is_table(Path(files[split][0])):
        raise DataError.at(
            "data", f"the {split} file ends in '{suffix or 'nothing'}' (allowed: {', '.join(allowed())})"
        )
    return suffix


def _own_name(name: str) -> str:
    """The file's own name, which errors show, if a folder can hold it."""
    last = name.replace("\\", "/").rpartition("/")[2]
    usable = last.isprintable() and 0 < len(last.encode("utf-8", "replace")) <= 200 and last.strip(".")
    return last if usable else f"upload{catalogue.ending_of(name)[-20:]}"
