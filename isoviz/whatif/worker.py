"""The process of one job: `python -m isoviz.whatif.worker JOB_FOLDER`, which holds `request.json`.

What it has to say goes to files of that folder, as a view's worker does (`isoviz.exploring.job_folder`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isoviz.exploring import results
from isoviz.exploring.job_folder import PARTIAL, fulfil
from isoviz.exploring.progress import ProgressFile
from isoviz.whatif.request import EncodingRequest, Request, request_of


def main(arguments: list[str] | None = None) -> int:
    """Do one job. Returns 0 when its result has its place, 1 when `error.json` says why not."""
    parser = argparse.ArgumentParser(prog="python -m isoviz.whatif.worker", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder.resolve()

    def work(found: dict[str, Any]) -> None:
        request = request_of(found)
        facts, arrays = compute(request, ProgressFile(folder))
        keep(request, facts, arrays, folder.parent.parent, folder / PARTIAL)

    return fulfil(folder, work, memory=(None, "Close what else needs memory."))


def compute(request: Request, tell: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts and arrays of a request; raises `IsoVizError` in the user's terms."""
    if isinstance(request, EncodingRequest):
        from isoviz.whatif import encoding

        return encoding.compute(request, tell)
    from isoviz.whatif import engine

    return engine.train_layer(request, tell)


def keep(request: Request, facts: dict[str, Any], arrays: dict[str, NDArray[Any]], root: Path, partial: Path) -> None:
    """Give a result its place under the request's key, and make room for it."""
    results.publish(partial, request.key, facts, arrays, at=root)
    results.shrink(results.limit(), at=root, keep=request.key)


if __name__ == "__main__":
    sys.exit(main())
