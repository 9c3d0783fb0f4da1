"""Does a second run of the quick studies give the recorded results again? Compares two folders of results, and runs nothing itself.

    python -m factory.record_examples --store EMPTY_DIR --results SECOND studies
    python benchmarks/reproduced.py SECOND [--recorded isoviz/demo/examples/studies] [--out docs]

Of each study: how many numbers with a spread (points of a figure with an interval, cells "mean ± deviation") both results have, how
many are equal as recorded, the largest distance in units of the spread pooled over both runs, and whether all verdicts are the same. A
distance of at most 1 is within the spread; where it is zero, any difference is too large. Columns of seconds and minutes are left out.
Exit code 1 if a number or a verdict is off.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _report import ROOT, Table, finish, machine, options

from isoviz.studies import Result

RECORDED = ROOT / "isoviz" / "demo" / "examples" / "studies"
CELL = re.compile(r"^([−-]?[\d.,]+) (?:± ([\d.,]+)|\(([\d.,]+)\))")
"""A mean with its deviation, or a median with it in parentheses."""
TIMES = re.compile("seconds|minutes", re.IGNORECASE)
ROUNDING = 1e-6
"""Relative: what two machines' arithmetic may differ by where nothing varies over seeds."""


def numbers(result: Result) -> dict[str, tuple[float, float]]:
    """Position in the table → a number and its spread, half the interval's width."""
    return dict([*_of_figures(result), *_of_tables(result)])


def _of_figures(result: Result) -> Iterator[tuple[str, tuple[float, float]]]:
    for number, figure in enumerate(result.figures):
        for index, panel in enumerate(figure.panels):
            for trace in panel.traces:
                spreads = trace.get("error_y", {}).get("array", [])
                for i, (y, spread) in enumerate(zip(trace["y"], spreads, strict=False) if spreads else ()):
                    yield f"figure {number}, panel {index}, {trace['name']}, point {i}", (y, spread)


def _of_tables(result: Result) -> Iterator[tuple[str, tuple[float, float]]]:
    for number, table in enumerate(result.tables):
        for line, row in enumerate(table.rows):
            for heading, cell in zip(table.header, row, strict=True):
                match = CELL.match(cell) if isinstance(cell, str) and not TIMES.search(heading) else None
                if match:
                    middle, spread = (_number(text) for text in (match[1], match[2] or match[3]))
                    yield f"table {number}, row {line}, {heading}", (middle, spread)


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def distance(recorded: tuple[float, float], again: tuple[float, float]) -> float:
    """Between two numbers, in units of their pooled spread."""
    apart = abs(recorded[0] - again[0])
    if math.isclose(recorded[0], again[0], rel_tol=ROUNDING, abs_tol=1e-12):
        return 0.0
    pooled = math.hypot(recorded[1], again[1]) / math.sqrt(2)
    return apart / pooled if pooled else math.inf


def row_of(first: Result, second: Result) -> tuple[list[str], bool]:
    """The line of one study, and whether it was reproduced."""
    recorded, again = numbers(first), numbers(second)
    shared = recorded.keys() & again.keys()
    apart = [distance(recorded[where], again[where]) for where in shared]
    same = [verdict.outcome for verdict in first.verdicts] == [verdict.outcome for verdict in second.verdicts]
    complete = recorded.keys() == again.keys() and len(first.runs) == len(second.runs)
    worst = max(apart, default=0.0)
    cells = [
        str(len(second.runs)) if second.planned else "none",
        f"{second.provenance.seconds:.0f}",
        f"{len(shared)} of {len(recorded)}",
        str(sum(difference == 0 for difference in apart)),
        f"{worst:.2f}",
        "same" if same else "differ",
    ]
    return cells, same and complete and worst <= 1


def main() -> int:
    """1 where a study was not reproduced."""
    parser = options(__doc__)
    parser.add_argument("second", type=Path, metavar="SECOND", help="folder with the results of the second run")
    parser.add_argument("--recorded", type=Path, default=RECORDED, metavar="DIR")
    chosen = parser.parse_args()
    header = ["study", "runs", "seconds", "numbers", "equal", "largest distance, spreads", "verdicts"]
    table = Table("Quick studies, run a second time", header)
    off = []
    for path in sorted(chosen.recorded.glob("*.json")):
        second = chosen.second / path.name
        if not second.is_file():
            table.rows.append([path.stem, *["not run"] * (len(header) - 1)])
            off.append(path.stem)
            continue
        cells, good = row_of(*(Result.model_validate_json(one.read_text(encoding="utf-8")) for one in (path, second)))
        table.rows.append([path.stem, *cells])
        off += [] if good else [path.stem]
    table.notes.append(
        "Seconds are those of the study's runs, which studies share. Equal: the same number as recorded."
    )
    about = machine(("torch", "transformers", "numpy"), "1 thread a run")
    missed = [f"{study}: a number beyond its spread, or another verdict" for study in off]
    return finish(chosen, "reproduced", "## Quick studies again", about, missed, table)


if __name__ == "__main__":
    sys.exit(main())
