"""Medians of contenders that take turns, so that a slow moment of the machine hits all of them."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def medians(contenders: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median milliseconds of each, after one untimed call."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def options(description: str | None, repeats: int = 7) -> argparse.Namespace:
    """`--repeats` (at least 5), `--quick` and `--out`, as every benchmark that writes a section has them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=repeats, help="timed calls per figure, at least 5")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script; no bar is judged")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write DIR/benchmarks.md and a plot in DIR/images")
    chosen = parser.parse_args()
    if chosen.repeats < 5:
        parser.error(f"--repeats: at least 5, got {chosen.repeats}")
    if chosen.quick and chosen.out and chosen.out.resolve() == Path(__file__).resolve().parent.parent / "docs":
        parser.error("--out: the documentation holds full runs only; give --quick another folder")
    return chosen
