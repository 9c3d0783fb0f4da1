"""The process of one job: `python -m isoviz.whatif.worker JOB_FOLDER`, which holds `request.json`.

What it has to say goes to files of that folder, as a view's worker does (`isoviz.exploring.worker`).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any, Final

import psutil
from numpy.typing import NDArray

from isoviz.errors import IsoVizError
from isoviz.exploring import results
from isoviz.exploring.progress import ProgressFile, read_json, write_json
from isoviz.exploring.worker import ERROR, PROCESS, REQUEST
from isoviz.whatif.request import EncodingRequest, Request, request_of

_PARTIAL: Final = "result"


def main(arguments: list[str] | None = None) -> int:
    """Do one job. Returns 0 when its result has its place, 1 when `error.json` says why not."""
    parser = argparse.ArgumentParser(prog="python -m isoviz.whatif.worker", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder.resolve()
    me = psutil.Process()
    write_json(folder / PROCESS, {"pid": me.pid, "started": me.create_time()})
    found = read_json(folder / REQUEST)
    assert found is not None, "whoever starts a worker writes the request first"
    try:
        request = request_of(found)
        facts, arrays = compute(request, ProgressFile(folder))
        keep(request, facts, arrays, folder.parent.parent, folder / _PARTIAL)
    except IsoVizError as error:
        return _failed(folder, str(error), error.field, error.advice)
    except Exception as error:  # a bug, or a machine's trouble: the log has the traceback, the page its name
        traceback.print_exc()
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return _failed(folder, "the memory is not enough", None, "Close what else needs memory.")
        reason = next(iter(str(error).strip().splitlines()), "")
        words = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        return _failed(folder, f"the computation failed with {words}", None, "The log below tells more.")
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def compute(request: Request, tell: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts and arrays of a request; raises `IsoVizError` in the user's terms."""
    if isinstance(request, EncodingRequest):
        from isoviz.whatif import encoding

        return encoding.compute(request, tell)
    from isoviz.whatif import layer

    return layer.compute(request, tell)


def keep(request: Request, facts: dict[str, Any], arrays: dict[str, NDArray[Any]], root: Path, partial: Path) -> None:
    """Give a result its place under the request's key, and make room for it."""
    results.publish(partial, request.key, facts, arrays, at=root)
    results.shrink(results.limit(), at=root, keep=request.key)


def _failed(folder: Path, message: str, field: str | None, advice: str | None) -> int:
    shutil.rmtree(folder / _PARTIAL, ignore_errors=True)
    print(message, file=sys.stderr, flush=True)
    write_json(folder / ERROR, {"message": message, "field": field, "advice": advice})
    return 1


if __name__ == "__main__":
    sys.exit(main())
