"""Stands in for `isoviz.exploring.spare` and for the work it is given: the same protocol, without the seconds of imports."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from isoviz.exploring import spare

if __name__ == "__main__":
    spare._PRELOADED = ()  # type: ignore[misc]
    sys.exit(spare.main())


def main(arguments: list[str] | None = None) -> int:
    """Work: say who did it, then wait as long as a file is there."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    print(f"done by {os.getpid()}", flush=True)
    while Path(path).exists():
        time.sleep(0.02)
    return 0
