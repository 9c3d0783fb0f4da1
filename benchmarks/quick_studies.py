"""How long do all 23 quick studies take? Runs them one after another into one store, so that they share runs as a user's would.

    python benchmarks/quick_studies.py --store DIR [--out DIR] [NAME ...]

Prints each study's seconds, the total, and the two slowest; --out also writes each record. Start with an empty store: a study whose runs
are there already takes no time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from isoviz import studies

ROOT = Path(__file__).resolve().parent.parent


def run(slug: str, store: str, out: str | None) -> tuple[float, float, int]:
    """Wall and processor seconds of one study, and its exit status."""
    words = [sys.executable, "-m", "isoviz", "study", "run", slug, "--scale", "quick", "--store", store]
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [*words, *(["--out", out] if out else [])],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    after = os.times()
    if done.returncode:
        print(done.stderr[-500:], file=sys.stderr)
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, used, done.returncode


def main() -> int:
    """1 where a study failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, metavar="DIR")
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    # several places of one computation are one study
    slugs = chosen.names or list(dict.fromkeys(entry.study.slug for entry in studies.listed()))
    seconds: dict[str, float] = {}
    used = failed = 0.0
    for slug in slugs:
        seconds[slug], processor, status = run(slug, chosen.store, chosen.out)
        used += processor
        failed += status != 0
        print(
            f"{seconds[slug]:7.1f} s  {processor:7.1f} s of processor  {slug}{'  FAILED' if status else ''}", flush=True
        )
    slowest = sorted(seconds, key=lambda slug: -seconds[slug])[:2]
    print(f"{sum(seconds.values()):7.1f} s  {used:7.1f} s of processor  together on {os.cpu_count()} cores")
    print(f"slowest: {', '.join(slowest)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
