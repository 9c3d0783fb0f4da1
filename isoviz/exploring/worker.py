"""The process of one job: `python -m isoviz.exploring.worker JOB_FOLDER`, which holds `request.json`.

What it has to say goes to files of that folder; its output goes to `log.txt`, where whoever starts it sends it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from numpy.typing import NDArray

from isoviz.exploring import encoders, measuring, results
from isoviz.exploring.job_folder import PARTIAL, fulfil
from isoviz.exploring.progress import ProgressFile
from isoviz.exploring.request import Rows, ViewRequest, key_of, rows_of

_WAIT: Final = 0.3


def main(arguments: list[str] | None = None) -> int:
    """Compute one view. Returns 0 when its result has its place, 1 when `error.json` says why not."""
    parser = argparse.ArgumentParser(prog="python -m isoviz.exploring.worker", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder.resolve()
    return fulfil(
        folder,
        lambda request: _work(folder, ViewRequest.from_json(request)),
        memory=("max_rows", "Take fewer rows, or close what else needs memory."),
    )


def _work(folder: Path, request: ViewRequest) -> None:
    root = folder.parent.parent
    limit = results.limit()
    tell = ProgressFile(folder)

    key = ""

    def show(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        nonlocal key
        key = key or _key_now(request, facts)  # which may read the rows
        view = results.find(key, at=root)
        if view is None:
            results.publish(folder / PARTIAL, key, facts, arrays, at=root)
        elif len(facts["pending"]) < len(view.pending):  # a job that was stopped may have been further than this one
            results.finish(key, facts, at=root)

    with _turn(root / "turns", tell):
        facts, arrays = measuring.compute(request, tell, show)
    if not results.finish(key, facts, at=root):  # somebody made room meanwhile
        results.publish(folder / PARTIAL, key, facts, arrays, at=root)
    results.shrink(limit, at=root, keep=key)


def _key_now(request: ViewRequest, facts: dict[str, Any]) -> str:
    """Not the key that was asked for: a model that came from the hub has another one now that it is here."""
    if request.direction:  # keys are of the rows in the task's own direction
        rows = rows_of(request.task, request.data)
    else:
        rows = Rows(facts["data_fingerprint"], {request.split: facts["rows_in_split"]})
    return key_of(request, encoders.resolve(request.model), rows)


@contextlib.contextmanager
def _turn(folder: Path, tell: ProgressFile) -> Iterator[None]:
    """Wait until fewer than `turns()` others compute: a class that presses at once must not bring the machine down.

    The locks are the operating system's, so that of a worker that was killed is free at once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    locks = [FileLock(folder / f"{number}.lock") for number in range(turns())]
    while True:
        for lock in locks:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            try:
                yield
            finally:
                lock.release()
            return
        tell(0, 1, "waiting until another view is done")
        time.sleep(_WAIT)


def turns() -> int:
    """How many views are computed at a time: one for every four cores."""
    return max(1, (os.cpu_count() or 1) // 4)


if __name__ == "__main__":
    sys.exit(main())
