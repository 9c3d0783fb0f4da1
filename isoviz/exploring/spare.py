"""A process that waits for work: `python -m isoviz.exploring.spare`, started and told what to do by `isoviz.exploring.starting`.

It has imported what reading with an encoder needs. Its order is `{"module", "arguments", "log"}`: it becomes
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
    print("ready", flush=True)
    order = waiting.order()
    if order is None:
        return 0
    waiting.log_to(Path(order["log"]))
    code: int = importlib.import_module(order["module"]).main(order["arguments"])
    return code


if __name__ == "__main__":
    sys.exit(main())
