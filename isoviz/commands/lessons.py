"""`isoviz lessons`: write the lessons and the playground to one HTML file, or check lesson files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from isoviz import boundary
from isoviz.commands import dashboard
from isoviz.errors import InputError
from isoviz.lessons import checking
from isoviz.lessons.reading import FaultyLessonError, read
from isoviz.operations.operation import argument


def run(
    out: Annotated[str | None, argument("where to write the HTML file", "FILE")] = None,
    check: Annotated[list[str] | None, argument("report the errors in lessons you have written", "FILE")] = None,
    add: Annotated[tuple[str, ...], argument("your own lessons for the HTML file", "FILE")] = (),
) -> int:
    """Write the file, or check lesson files."""
    if (out is None) == (check is None):
        raise InputError("out: give either --out or --check", field="out")
    return _write(Path(out), add) if out is not None else _check(check or [])


def _check(names: Sequence[str]) -> int:
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


def _write(out: Path, add: Sequence[str]) -> int:
    """Write the file. A separate process prints it, because the engine does not import the dashboard, which has the parts."""
    dashboard.require("lessons", "lessons_file.py", package="jinja2")
    if not os.path.isdir(out.parent):  # unlike Path.is_dir, false for names that are too long
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    if os.path.isdir(out):
        raise InputError(f"out: '{out}' is a folder; name a file", field="out")
    for name in add:
        read(Path(name))
    rendering = dashboard.render("lessons_file", *(str(Path(name).resolve()) for name in add))
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
