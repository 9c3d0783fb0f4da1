"""Bad input by the thousand: command lines, addresses, files and model folders. None may end in a traceback or an exception box.

Run: python benchmarks/fuzz.py [cli addresses files models] [--count N] [--seed N] [--seconds N]

All are answered in this process, so that its memory is the server's. It counts tracebacks, exception boxes and refusals that are
not one line of at most 300 characters, what the process holds at its end beside what it held after the first inputs, and every
file that was opened for writing outside its own temporary folder. Command lines train, measure and serve nothing: an input that
would is counted as reached. Each fault is printed with its first input. `--seconds` ends a long count early and says where.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

COUNTS = {"cli": 2000, "addresses": 2000, "files": 500, "models": 300}
MOST_GROWTH_MB = 300
_WARM_UP = 40
"""Inputs until every library is loaded."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Writes:
    """Paths that this process wrote to outside some folders, by Python's own audit events."""

    def __init__(self, allowed: list[Path]) -> None:
        self.allowed = [str(path) for path in allowed]
        self.outside: set[str] = set()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if not isinstance(path, (str, bytes)) or not (flags & _WRITES or (mode and set(mode) & set("wax+"))):
                return
        elif event in (
            "os.mkdir",
            "os.remove",
            "os.rmdir",
            "os.rename",
            "os.symlink",
            "sqlite3.connect",
            "shutil.rmtree",
        ):
            path = arguments[1 if event in ("os.rename", "os.symlink") else 0]
            if any(isinstance(one, int) and one >= 0 for one in arguments[2 if event == "os.mkdir" else 1 :]):
                return  # relative to an open folder, as `shutil.rmtree` works; that folder was named before
        else:
            return
        place = os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if place and not place.startswith((*self.allowed, "/dev/null", "/proc/self")):
            self.outside.add(f"{event} {place}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", nargs="*", default=list(COUNTS), metavar="WHAT", help=f"of {', '.join(COUNTS)} (default: all)"
    )
    parser.add_argument("--count", type=int, help=f"inputs of each (default: {COUNTS})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop drawing after so long")
    options = parser.parse_args()
    if unknown := set(options.what) - set(COUNTS):
        parser.error(f"unknown: {', '.join(unknown)}")
    root = Path(tempfile.mkdtemp(prefix="isoviz-fuzz-")).resolve()
    os.environ |= {
        "ISOVIZ_HOME": str(root / "home"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TMPDIR": str(root),
    }
    tempfile.tempdir = str(root)
    os.chdir(root)
    writes = Writes([root])
    good = True
    try:
        for what in options.what:
            good &= _measure(what, options, root)
    finally:
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)
    compiled = {line for line in writes.outside if "__pycache__" in line}
    outside = sorted(writes.outside - compiled)
    print(f"written outside its folder: {len(outside)}" + "".join(f"\n  {line}" for line in outside[:20]))
    return 0 if good and not outside else 1


def _measure(what: str, options: argparse.Namespace, root: Path) -> bool:
    import psutil
    from hypothesis import strategies as st

    from tests.fuzzing import addresses, command_line, files, models
    from tests.fuzzing.collecting import collect
    from tests.tiny import TinyModels

    box = root / f"box-{what}"
    files.fill(box)
    check: Callable[[Any], object]
    with ExitStack() as stack:
        if what == "cli":
            strategy, check = command_line.words(box), command_line.check
        elif what == "addresses":
            stack.enter_context(addresses.without_jobs())
            strategy, check = addresses.addresses(addresses.fill(root / "home"), box), addresses.check
        elif what == "files":
            strategy = st.tuples(files.damaged(), files.columns)
            check = lambda case: files.check(case, box)  # noqa: E731
        else:
            whole = TinyModels(root / "models")("bert")
            strategy, check = models.damages, lambda damage: models.check(damage, whole, root / "copy")
        begun, held = time.monotonic(), [0.0]
        seen = [0]

        def checked(example: Any) -> object:
            if time.monotonic() - begun > options.seconds:
                return "not drawn any more"
            seen[0] += 1
            if seen[0] == _WARM_UP:
                held[0] = _megabytes(psutil.Process())
            return check(example)

        outcome = collect(strategy, checked, options.count or COUNTS[what], options.seed)
        gc.collect()
        growth = _megabytes(psutil.Process()) - held[0]
    faults = sum(outcome.counts.values())
    print(
        f"{what}: {seen[0]} inputs in {time.monotonic() - begun:.0f} s, {faults} faults, memory {held[0]:.0f} MB {growth:+.0f} MB"
    )
    print(outcome, flush=True)
    return not faults and (what != "addresses" or growth <= MOST_GROWTH_MB)


def _megabytes(process: Any) -> float:
    return float(process.memory_info().rss) / 1e6


if __name__ == "__main__":
    sys.exit(main())
