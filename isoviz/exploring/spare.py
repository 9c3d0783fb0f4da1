"""A process that waits for work: `python -m isoviz.exploring.spare`, started and told what to do by `isoviz.exploring.starting`.

It has imported what reading with an encoder needs, and read a sentence. Its order is `{"module", "arguments", "log"}`: it becomes
`python -m MODULE ARGUMENTS`, with its output in that log, and ends when that does. It has nothing of a GPU before.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Final

from isoviz.runs import waiting

_PRELOADED: Final = (
    *waiting.ENCODERS,
    "pyarrow.parquet",
    "isoviz.models.extract",
    "isoviz.models.profile",
    "isoviz.exploring.worker",
)


def main() -> int:
    """Wait for an order and follow it; the exit code is its own."""
    waiting.prepare(_PRELOADED, gently=False)  # somebody looks at the page and is about to press
    _read_once()
    print("ready", flush=True)
    order = waiting.order()
    if order is None:
        return 0
    waiting.log_to(Path(order["log"]))
    code: int = importlib.import_module(order["module"]).main(order["arguments"])
    return code


def _read_once() -> None:
    """What is slow the first time in a process, tables of weights' names and threads among it, is done before the order comes."""
    from isoviz import tasks
    from isoviz.exploring import encoders

    tasks.load(tasks.get("demo/acceptability"))
    encoders.load("demo/tiny-bert").embed([["the cat sleeps"]], layer=1, pooling="cls", max_length=8)


if __name__ == "__main__":
    sys.exit(main())
