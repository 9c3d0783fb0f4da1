"""Owner, mode and content of all files below a folder, to prove that a command changed nothing that it was not asked to change."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection
from pathlib import Path

Snapshot = dict[str, tuple[int, int, int, str]]
"""Path → mode with the kind, owner, group, and content: a digest, `database`, the target of a link, or nothing."""


def snapshot(folder: Path) -> Snapshot:
    """Of a folder and everything below it. Nothing but regular files is opened."""
    seen: Snapshot = {}
    for root, folders, names in os.walk(folder):
        for path in (Path(root), *(Path(root, name) for name in [*folders, *names])):
            if path.name.endswith(("-wal", "-shm")):  # of a database that a finished command has not closed yet
                continue
            about = path.lstat()
            content = os.readlink(path) if stat.S_ISLNK(about.st_mode) else ""
            if stat.S_ISREG(about.st_mode):
                data = path.read_bytes()
                content = "database" if data.startswith(b"SQLite format 3") else hashlib.sha256(data).hexdigest()
            seen[str(path)] = (about.st_mode, about.st_uid, about.st_gid, content)
    return seen


def changes(before: Snapshot, after: Snapshot, outputs: Collection[Path] = ()) -> list[str]:
    """Paths that appeared, disappeared or differ; of `outputs` and what is below them only those with another mode or owner."""

    def differs(path: str) -> bool:
        if path in before and path in after and before[path][:3] != after[path][:3]:
            return True
        return before.get(path) != after.get(path) and not any(Path(path).is_relative_to(output) for output in outputs)

    return sorted(path for path in before.keys() | after.keys() if differs(path))
