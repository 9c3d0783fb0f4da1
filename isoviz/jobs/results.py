"""Results of jobs on disk: one folder per key, written atomically by a rename; beyond a limit, the least recently used are removed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.demo import EXAMPLE, EXAMPLES
from isoviz.home import home, make_private
from isoviz.input_validation import positive_setting

FACTS: Final = "profile.json"
ARRAYS: Final = "arrays.safetensors"
LIMIT: Final = 2.0
"""Most GiB of a store on disk; `ISOVIZ_VIEWS_LIMIT` overrides it."""


def byte_limit() -> int:
    """Most bytes of a store. Raises `InputError` for an invalid `ISOVIZ_VIEWS_LIMIT`."""
    return int((positive_setting("ISOVIZ_VIEWS_LIMIT") or LIMIT) * 2**30)


@dataclass(frozen=True)
class Result:
    """The result of a job.

    Attributes:
        folder: its folder; the folder's name is the key.
        facts: JSON. Only parts listed under `pending` change while the job runs.
    """

    folder: Path
    facts: Mapping[str, Any] = field(repr=False)

    @property
    def pending(self) -> tuple[str, ...]:
        """Names of pending facts."""
        return tuple(self.facts.get("pending", ()))

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        from safetensors.numpy import load_file

        return load_file(self.folder / ARRAYS)


@dataclass(frozen=True)
class ResultStore:
    """A folder of results, and of the inputs of running jobs.

    Attributes:
        name: name of the folder in `isoviz.home.home()`.
        limit: most bytes of results.
        most: most results; None: no limit.
    """

    name: str
    limit: Callable[[], int] = byte_limit
    most: int | None = None

    @property
    def root(self) -> Path:
        """The store's folder."""
        return home() / self.name

    def inputs_of(self, key: str) -> Path:
        """File with the arrays of a running job's request; it need not exist."""
        return self.root / "inputs" / f"{key}.safetensors"

    def find(self, key: str) -> Result | None:
        """The result of a key, marked as recently used; None if there is none. Results of examples are bundled."""
        shipped = key.startswith(EXAMPLE)
        folder = EXAMPLES / self.name / key if shipped else self.root / "results" / key
        facts = read_json(folder / FACTS)
        if facts is None:
            return None
        if shipped:
            return Result(folder, facts)
        with contextlib.suppress(OSError):  # just removed, or owned by another user
            os.utime(folder)
        return Result(folder, facts)

    def publish(self, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Publish a result atomically. If it already exists, replace only pending parts."""
        from safetensors.numpy import save_file

        if self._complete(key, facts):
            return
        final = self.root / "results" / key
        partial = final.with_name(f".new-{key}-{secrets.token_hex(4)}")
        make_private(partial)
        try:
            save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, partial / ARRAYS)
            write_json(partial / FACTS, facts)
            os.rename(partial, final)
        except OSError:
            if not self._complete(key, facts):  # otherwise another process published the same content
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _complete(self, key: str, facts: Mapping[str, Any]) -> bool:
        """Whether a result exists; updates its facts if the new ones are more complete."""
        result = self.find(key)
        if result is None:
            return False
        if len(facts.get("pending", ())) < len(result.pending):
            try:
                write_json(result.folder / FACTS, facts)
            except FileNotFoundError:  # just removed
                return False
        return True

    def forget(self, key: str) -> None:
        """Remove the result of a key, if there is one."""
        _remove(self.root / "results" / key)

    def keys(self, where: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        """Keys of the results whose facts satisfy `where`."""
        results = ((folder.name, read_json(folder / FACTS)) for folder in self._folders())
        return [key for key, facts in results if facts is not None and where(facts)]

    def size(self) -> int:
        """Bytes of all results."""
        return sum(map(_bytes, self._folders()))

    def shrink(self, keep: str | None = None) -> None:
        """Remove the least recently used results until the limits are met, and what killed processes left.

        Args:
            keep: a key whose result is kept in any case.
        """
        sizes = {folder: _bytes(folder) for folder in self._folders()}
        total, count = sum(sizes.values()), len(sizes)
        for folder in sorted(sizes, key=_last_seen):
            if total <= self.limit() and (self.most is None or count <= self.most):
                break
            if folder.name != keep:
                _remove(folder)
                total -= sizes[folder]
                count -= 1
        for left in (*(self.root / "results").glob(".*"), *(self.root / "inputs").glob("*")):
            if time.time() - _last_seen(left) > 86400:
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    def _folders(self) -> list[Path]:
        try:
            return [path for path in (self.root / "results").iterdir() if not path.name.startswith(".")]
        except FileNotFoundError:
            return []


def _remove(folder: Path) -> None:
    """Remove a folder, if it exists: its facts first, so that nobody finds a part of it."""
    (folder / FACTS).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _last_seen(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


def _bytes(folder: Path) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_size
    return total


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if the file does not exist."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return content
