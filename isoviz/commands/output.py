"""How the command line speaks: one JSON document on stdout, or text; progress and notes on stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoviz.formatting import decimals, number

if TYPE_CHECKING:
    from isoviz.readouts.slices import Slice
    from isoviz.runs.summaries import RunSummary

_python_warnings: list[str] = []


def collect_warnings() -> None:
    """From now on Python's own warnings are one line on stderr each, and `print_json` repeats them."""

    plain = warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if not issubclass(category, (UserWarning, RuntimeWarning)):  # of a library to its programmers
            plain(message, category, *place, **rest)
            return
        text = " ".join(str(message).split())
        if text not in _python_warnings:
            _python_warnings.append(text)
            print_notes([text])

    _python_warnings.clear()
    warnings.showwarning = note
    for category in (UserWarning, RuntimeWarning):
        warnings.simplefilter("always", category)  # not once per place and process: `note` knows what it has said


@dataclass(frozen=True)
class Answer:
    """What a verb answers.

    Attributes:
        document: all of it, for programs.
        text: for people, or what prints it.
        notes: what a reader must know: on stderr, and under `warnings` of the document.
        code: the exit code.
    """

    document: Mapping[str, Any]
    text: str | Callable[[], None] = ""
    notes: Iterable[str] = ()
    code: int = 0


def print_json(document: Mapping[str, Any], notes: Iterable[str] = ()) -> None:
    """Exactly one JSON document on stdout; undefined numbers are null, never NaN. `notes` follow the document's own `warnings`."""
    from pydantic_core import to_json  # several times as fast as json on thousands of runs

    every = dict.fromkeys([*document.get("warnings", ()), *notes, *_python_warnings])
    text = to_json({**document, "warnings": list(every)}, indent=2, inf_nan_mode="null").decode()
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def describe(run: RunSummary, measures: Collection[str] | None = None) -> str:
    """A run in a few lines, numbers with the names of `--json`.

    Args:
        measures: of isotropy, that are shown, on one line; None for all.
    """
    from isoviz.events import ENDINGS
    from isoviz.runs.summaries import CLOUDS, TIMING

    setup = " ".join([run.method, *(f"{name}={value}" for name, value in run.params.items())])
    lines = [f"{run.id}  {run.status:<8}  {run.model}  {run.task}  {setup}  seed {run.seed}"]
    if run.status == "finished":
        scores = {name: value for name, value in run.metrics.items() if name not in ("loss", "epoch")}
        against = [f"{name} {decimals(value, 4)}" for name, value in run.baselines.items() if value is not None]
        lines.append(f"validation (n = {run.eval_rows or 0:,}): {_numbers(scores, 4)}")
        lines[-1] += f" ({', '.join(against)})" if against and measures is None else ""
        for cloud in CLOUDS:
            values = run.numbers.get(cloud, {})
            shown = {name: value for name, value in values.items() if measures is None or name in measures}
            n, d = run.size(cloud) or (0, 0)
            lines += [f"{cloud} (n = {n:,}, d = {d:,}): {_numbers(shown, 3)}"] if shown else []
        seconds = run.numbers.get(TIMING, {}).get("total_seconds")
        lines += [] if seconds is None else [f"{seconds:.1f} s"]
        if measures is not None:
            lines[1:] = ["; ".join(lines[1:])]
        lines += [*filter(None, [run.left_out]), *(f"note: {note}" for note in run.notes)]
    elif run.status in ENDINGS:
        lines.append(f"{run.message} {run.advice}".strip())
    return "\n    ".join(filter(None, lines))


def _numbers(values: Mapping[str, float | None], places: int) -> str:
    return ", ".join(f"{name} {decimals(value, places)}" for name, value in values.items())


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their longest cell; the first two to the left, numbers to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def print_slices(found: Iterable[Slice]) -> None:
    """The measures of each slice, and whether it differs from the rest."""
    header = ("slice", "measure", "n", "value", "95 % interval", "the rest", "differs from the rest (Holm)")
    rows = []
    for one in found:
        ends = f"{number(one.low)} to {number(one.high)}"
        rows.append((one.slice, one.measure, f"{one.n:,}", number(one.value), ends, number(one.rest), one.verdict))
    print_table(header, rows)


def print_notes(notes: Iterable[str]) -> None:
    """Each note once, on stderr."""
    for note in dict.fromkeys(notes):
        print(f"note: {note}", file=sys.stderr)


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    """A function (done, total, what) that draws a bar on stderr while that is a terminal, and nothing elsewhere."""
    from tqdm import tqdm

    # `disable` is said outright because `quiet_libraries` switches all other bars off by environment.
    with tqdm(disable=not sys.stderr.isatty(), file=sys.stderr, leave=False) as bar:

        def show(done: int, total: int, what: str) -> None:
            if bar.total != total or bar.desc != f"{what}: ":
                bar.reset(total=total)
                bar.set_description(what)
            bar.update(done - bar.n)

        yield show


def reader_is_gone() -> bool:
    """Whether stdout is a pipe that no one reads, as after `… | head -1`. What is left goes nowhere then, without an error."""
    import os
    import select

    if sys.platform != "win32":  # which cannot say it: what it writes to most often is stdout
        stdout = select.poll()
        stdout.register(sys.stdout.fileno(), 0)
        if not stdout.poll(0):  # reports errors only
            return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def quiet_libraries() -> None:
    """Keep the libraries' progress bars and load reports out of the answer."""
    import os

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")
