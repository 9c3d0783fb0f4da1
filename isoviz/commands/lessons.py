"""`isoviz lessons`: write the lessons and the playground to one HTML file, or check lesson files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from isoviz.commands import page
from isoviz.errors import InputError
from isoviz.lessons import checking
from isoviz.lessons.reading import read
from isoviz.operations.operation import argument


def run(
    out: Annotated[str | None, argument("where to write the HTML file", "FILE")] = None,
    check: Annotated[list[str] | None, argument("report the errors in lessons you have written", "FILE")] = None,
    add: Annotated[tuple[str, ...], argument("your own lessons for the HTML file", "FILE")] = (),
) -> int:
    """Write the file, or check lesson files."""
    if (out is None) == (check is None):
        raise InputError("out: give either --out or --check", field="out")
    return page.write(Path(out), add, start="lessons") if out is not None else _check(check or [])


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
    except InputError as error:
        return [str(error)]
    return [f"{path.name}: {problem}" for problem in checking.problems(lesson)]
