"""`isoviz lessons`: write the lessons and the playground to one HTML file, or check lesson files."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from isoviz import boundary
from isoviz.commands import dashboard
from isoviz.errors import InputError
from isoviz.lessons import checking
from isoviz.lessons.reading import FaultyLessonError, read


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    output = parser.add_mutually_exclusive_group(required=True)
    output.add_argument("--out", metavar="FILE", help="where to write the HTML file")
    output.add_argument("--check", nargs="+", metavar="FILE", help="report the errors in lessons you have written")
    parser.add_argument("--add", nargs="+", default=[], metavar="FILE", help="your own lessons for the HTML file")


def run(options: argparse.Namespace) -> int:
    """Write the file, or check lesson files."""
    return _check(options.check) if options.check else _write(options)


def _check(names: list[str]) -> int:
    """Report errors in each file: in its syntax and in the numbers it states. Returns 2 if there are any."""
    wrong = 0
    for name in names:
        problems = _problems(Path(name))
        wrong += len(problems)
        for problem in problems:
            print(problem, file=sys.stderr)
        if not problems:
            print(f"{name}: all claims hold")
    return 2 if wrong else 0


def _problems(path: Path) -> list[str]:
    try:
        lesson = read(path)
    except FaultyLessonError as error:
        return error.problems
    return [f"{path.name}: {problem}" for problem in checking.problems(lesson)]


def _write(options: argparse.Namespace) -> int:
    """Write the file. A separate process prints it, because the engine does not import the dashboard, which has the parts."""
    out = Path(options.out)
    dashboard.require("lessons", "lessons_file.py", streamlit=False)
    if not os.path.isdir(out.parent):  # unlike Path.is_dir, false for names that are too long
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    if os.path.isdir(out):
        raise InputError(f"out: '{out}' is a folder; name a file", field="out")
    for name in options.add:
        read(Path(name))
    rendering = dashboard.render("lessons_file", *(str(Path(name).resolve()) for name in options.add))
    if rendering.returncode:
        sys.stderr.write(rendering.stderr.decode(errors="replace"))
        return 1
    try:
        out.write_bytes(rendering.stdout)
    except OSError as error:
        raise InputError(f"out: '{out}' cannot be written to: {boundary.reason(error)}", field="out") from None
    if out.is_file():  # a device or a pipe is no file to open
        print(f"{out}: {len(rendering.stdout) / 1e6:.2f} MB; open it in any browser")
    return 0
