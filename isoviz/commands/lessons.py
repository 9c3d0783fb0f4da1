"""`isoviz lessons`: write the playground and the lessons to one HTML file, or check lesson files."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from isoviz.errors import InputError
from isoviz.lessons import checking
from isoviz.lessons.reading import FaultyLessonError, read

ROOT = Path(__file__).resolve().parents[2]


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
    """Write the file. A separate process does so, because the engine does not import the dashboard, which has the parts."""
    out = Path(options.out)
    if not (ROOT / "dashboard" / "lessons_file.py").is_file():
        raise InputError("lessons: the playground is only in a source checkout; run this command from one")
    if not out.parent.is_dir():
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    if out.is_dir():
        raise InputError(f"out: '{out}' is a folder; name a file", field="out")
    for name in options.add:
        read(Path(name))
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    own = [str(Path(name).resolve()) for name in options.add]
    command = [sys.executable, "-m", "dashboard.lessons_file", str(out.resolve()), *own]
    code = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode
    if code == 0:
        print(f"{out}: {out.stat().st_size / 1e6:.2f} MB; open it in any browser")
    return 1 if code else 0
