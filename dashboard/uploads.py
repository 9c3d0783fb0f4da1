"""Task data that a visitor uploads: kept below the store's folder by content, so that a run can be repeated from it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dashboard import reading
from isoviz.errors import DataError
from isoviz.tasks.files import SPLITS, SUFFIXES
from isoviz.tasks.protocol import TRAIN, Task

FOLDER = "uploads"

Files = Mapping[str, tuple[str, bytes | memoryview]]
"""Split → (file name as uploaded, content). Of the name only the ending is used."""


def save(store_folder: Path, task: Task, files: Files) -> Path:
    """Check uploaded splits and keep them; the same content gives the same folder, and nothing bad is kept.

    Args:
        store_folder: the store's folder.
        task: what the rows are for.
        files: both splits.

    Returns:
        The folder with `train` and `validation`.

    Raises:
        InputError: a split is missing, its ending is unknown, its rows cannot serve the task, or they exceed a limit.
    """
    return _keep(store_folder, files, SPLITS, lambda folder: reading.check(task, str(folder), in_callback=True))


def save_own(store_folder: Path, files: Files) -> Path:
    """Keep a person's own files, `train` and perhaps `validation`: tables, whose rows are looked at when columns are chosen.

    Raises:
        InputError: there is no training file, an ending is unknown, a file is no table with rows, or it exceeds a limit.
    """
    splits = [TRAIN, *(split for split in SPLITS if split in files and split != TRAIN)]
    return _keep(store_folder, files, splits, lambda folder: reading.check_tables(str(folder)))


def _keep(store_folder: Path, files: Files, splits: Sequence[str], check: Callable[[Path], object]) -> Path:
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
            for split in splits:
                (partial / f"{split}{suffixes[split]}").write_bytes(files[split][1])
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
