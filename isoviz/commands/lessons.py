"""`isoviz lessons`: check lesson files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isoviz.errors import InputError
from isoviz.lessons import checking
from isoviz.lessons.reading import read


def run(options: argparse.Namespace) -> int:
    """Say what is wrong in each file: how it is written, and whether what it teaches is true. 2 if anything is."""
    wrong = 0
    for name in options.check:
        found = _problems(Path(name))
        wrong += len(found)
        for problem in found:
            print(problem, file=sys.stderr)
        if not found:
            print(f"{name}: all claims hold")
    return 2 if wrong else 0


def _problems(path: Path) -> list[str]:
    try:
        lesson = read(path)
    except InputError as error:
        return str(error).splitlines()
    return [f"{path.name}: {problem}" for problem in checking.problems(lesson)]
