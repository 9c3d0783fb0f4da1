"""Bad input by the thousand: command lines, addresses and files. None may end in a traceback or an exception box.

Run: python benchmarks/fuzz.py [cli addresses files server] [--count N] [--seed N] [--seconds N]

The first three are answered in this process. `server` opens addresses in a real server, with a runner's link, over folders that hold
damaged files and small files that are large inside; it counts exception boxes and tracebacks in the server's log, and its memory is
the server's. For the others it counts tracebacks, exception boxes and refusals that are not one line of at most 300 characters.
Each row ends with the process's memory now and after the first inputs. Every change outside the temporary folder counts as a fault,
including those of the server's readers, and so does another owner, mode or content of the folder of inputs. Command lines train,
measure and serve nothing: an input that would is counted as reached. Each fault is printed with its first input. `--seconds` ends a
long count early and says where.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import _writes
from _report import ROOT

COUNTS = {"cli": 2000, "addresses": 2000, "files": 500, "server": 2000}
MOST_GROWTH_MB = 300
_WARM_UP = 40
"""Inputs until every library is loaded."""
_BOMB = 5_000_000, 100
"""Rows, and characters of each: 300 kilobytes on the disk, half a gigabyte once read."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(COUNTS)} (default: all)")
    parser.add_argument("--count", type=int, help=f"inputs of each (default: {COUNTS})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop drawing after so long")
    options = parser.parse_args()
    if unknown := set(options.what) - set(COUNTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))} (allowed: {', '.join(COUNTS)})")
    root = Path(tempfile.mkdtemp(prefix="isoviz-fuzz-")).resolve()
    os.environ |= {
        "ISOVIZ_HOME": str(root / "home"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TMPDIR": str(root),
    }
    tempfile.tempdir = str(root)
    os.chdir(root)
    outside: set[str] = set()
    _writes.watch([root], outside.add)
    good = True
    try:
        for kind in options.what or COUNTS:
            good &= _measure(kind, options, root, outside)
    finally:
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)
    print(f"written outside its folder: {len(outside)}" + "".join(f"\n  {line}" for line in sorted(outside)[:20]))
    return 0 if good and not outside else 1


def _measure(kind: str, options: argparse.Namespace, root: Path, outside: set[str]) -> bool:
    import psutil
    from hypothesis import strategies as st

    from isoviz import allowed_paths
    from tests.fuzzing import addresses, command_line, files, untouched
    from tests.fuzzing.collecting import collect

    allowed_paths.restrict_to(None)  # the pages that were opened before restrict this process
    box = root / f"box-{kind}"
    files.fill(box)
    drawn = root / "drawn"
    drawn.mkdir(exist_ok=True)
    check: Callable[[Any], object]
    process = psutil.Process()
    with ExitStack() as stack:
        if kind == "cli":
            strategy, check = command_line.words(box), lambda line: command_line.check(line, box)
        elif kind == "addresses":
            stack.enter_context(addresses.without_jobs())
            strategy, check = addresses.addresses(addresses.fill(root / "home"), box), addresses.check
        elif kind == "server":
            files.bomb(box / "bomb.parquet", *_BOMB)
            with addresses.without_jobs():
                known = addresses.fill(root / "home")
            check, number = stack.enter_context(_served(root, outside))
            strategy, process = addresses.addresses(known, box), psutil.Process(number)
        else:
            strategy = st.tuples(files.damaged(), files.columns)
            check = lambda case: files.check(case, drawn)  # noqa: E731
        before = untouched.snapshot(box)
        started, memory, most = time.monotonic(), 0.0, 0.0
        seen = 0

        def checked(example: Any) -> object:
            nonlocal seen, memory, most
            if time.monotonic() - started > options.seconds:
                return "not drawn any more"
            seen += 1
            if seen == _WARM_UP:
                memory = _megabytes(process)
            most = max(most, _megabytes(process))
            if seen % 200 == 0:
                print(f"{kind}: {seen} after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            return check(example)

        outcome = collect(strategy, checked, options.count or COUNTS[kind], options.seed)
        gc.collect()
        growth = _megabytes(process) - memory
    faults = sum(outcome.counts.values())
    seconds = time.monotonic() - started
    print(
        f"{kind}: {seen} inputs in {seconds:.0f} s, {faults} faults, memory {memory:.0f} MB {growth:+.0f} MB (at most {most - memory:+.0f})"
    )
    print(outcome, flush=True)
    # `cli` compares after each input
    changed = [] if kind == "cli" else untouched.changes(before, untouched.snapshot(box))
    print("".join(f"changed: {path}\n" for path in changed), end="", flush=True)
    return not faults and not changed and (kind not in ("addresses", "server") or growth <= MOST_GROWTH_MB)


@contextmanager
def _served(root: Path, outside: set[str]) -> Iterator[tuple[Callable[[Any], object], int]]:
    """A real server on the store of this process: what opens an address there, and the server's process id."""
    from isoviz.operations.access import links
    from isoviz.operations.access.visitors import Role
    from tests.browser.conftest import start
    from tests.fuzzing import sessions

    written = root / "written.log"
    path = [_writes.starter(root / "starter", [root], written), str(ROOT), os.environ.get("PYTHONPATH", "")]
    server = start(
        root / "home",
        ISOVIZ_NO_TOKEN="",
        ISOVIZ_ROOTS=str(root),
        STREAMLIT_CLIENT_SHOW_ERROR_DETAILS="full",
        ISOVIZ_QUOTA_JOBS="0",  # an address alone starts computations, which are no bad input
        PYTHONPATH=os.pathsep.join(filter(None, path)),
    )
    log = next((root / "home").glob("server-*.log"))
    visitor = sessions.by_link(server.url, links.read(server.store.folder).secrets[Role.RUNNER])
    printed = 0

    def check(address: Any) -> object:
        nonlocal printed
        answer = visitor.check(address)
        text = log.read_text(errors="replace")
        new, printed = text[printed:], len(text)
        assert "Traceback" not in new, re.sub(r"^.*?(?=Traceback)", "", new, flags=re.DOTALL)
        return answer

    try:
        yield check, server.process.pid
    finally:
        server.end()
        assert written.is_file(), "the server was not watched"
        outside |= set(written.read_text().splitlines())


def _megabytes(process: Any) -> float:
    return float(process.memory_info().rss) / 1e6


if __name__ == "__main__":
    sys.exit(main())
