"""The process that trains one run: `python -m isoviz.runs.worker`.

It begins as a spare: it imports what training needs and waits for one line of JSON on its standard input, `{"store": URL,
"run": ID}`. If that ends without a line, whoever started it is gone and so is the spare. From the line on it stands alone:
what it has to say goes to the store and to the run's log, and it outlives the application.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Final

from isoviz.runs import waiting
from isoviz.runs.execution import LOG, Train, execute
from isoviz.runs.store import Store

__all__ = ["execute", "main"]

DEFAULT_TRAIN: Final = "isoviz.training:train"
# What a run of the most common kind imports besides.
_PRELOADED: Final = (
    *waiting.ENCODERS,
    "transformers.optimization",
    "accelerate",
    "sklearn.metrics",
    "isoviz.training.loop",
)


def main(arguments: list[str] | None = None) -> int:
    """Wait for a run, train it. Returns the exit code: 0 when the run ended in the store, however it ended."""
    parser = argparse.ArgumentParser(prog="python -m isoviz.runs.worker", description=__doc__)
    parser.add_argument("--train", default=DEFAULT_TRAIN, metavar="MODULE:NAME", help="what trains")
    module, _, name = parser.parse_args(arguments).train.partition(":")
    if f"{module}:{name}" == DEFAULT_TRAIN:
        waiting.prepare(_PRELOADED, gently=True)
    train: Train = getattr(importlib.import_module(module), name)

    order = waiting.order()
    if order is None:
        return 0
    store = Store(order["store"])
    waiting.log_to(store.folder_of(order["run"]) / LOG)
    print(f"worker {os.getpid()} takes run {order['run']}", flush=True)
    row = execute(store, order["run"], train=train)
    return 0 if row.ended is not None else 1


if __name__ == "__main__":
    sys.exit(main())
