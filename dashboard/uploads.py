"""Task data that a visitor uploads: kept below the store's folder by content, so that a run can be repeated from it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from isoviz import tasks
from isoviz.errors import DataError
from isoviz.tasks.files import SPLITS, SUFFIXES
from isoviz.tasks.protocol import Task

FOLDER = "uploads"


def save(store_folder: Path, task: Task, files: Mapping[str, tuple[str, bytes | memoryview]]) -> Path:
    """Check uploaded splits and keep them; the same content gives the same folder, and nothing bad is kept.

    Args:
        store_folder: the store's folder.
        task: what the rows are for.
        files: split → (file name as uploaded, content). Of the name only the ending is used.

    Returns:
        The folder with `train` and `validation`.

    Raises:
        DataError: a split is missing, its ending is unknown, or its rows cannot serve the task.
    """
    suffixes = {split: _suffix(split, files) for split in SPLITS}
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update(f"{split}{suffixes[split]}\0".encode())
        digest.update(hashlib.sha256(files[split][1]).digest())
    root = store_folder / FOLDER
    final = root / digest.hexdigest()[:16]
    if not final.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=root, prefix=".incoming-"))
        try:
            for split in SPLITS:
                (partial / f"{split}{suffixes[split]}").write_bytes(files[split][1])
            tasks.check_data(task, partial)
            _move(partial, final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    else:
        tasks.check_data(task, final)  # kept for another task, perhaps
    return final


def _suffix(split: str, files: Mapping[str, tuple[str, bytes | memoryview]]) -> str:
    if split not in files:
        raise DataError(f"data: the {split} file is missing (needed: {' and '.join(SPLITS)})", field="data")
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
