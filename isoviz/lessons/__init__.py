"""The lessons: data files in this folder, read and checked by `isoviz.lessons.reading`.

A lesson asks for a guess, moves the playground's controls, shows how far off the guess was, and ends in a sentence whose claims are
checked on the shown numbers. `python -m isoviz lessons --check FILE` says what is wrong in a file of your own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib.resources import files
from itertools import islice
from pathlib import Path

from isoviz.home import home
from isoviz.lessons.reading import FaultyLessonError, Lesson, parse, read

__all__ = ["Lesson", "catalogue", "on_this_server", "own", "with_own"]

MOST_OWN = 50
"""Files of one's own folder that are read."""


@functools.cache
def catalogue() -> tuple[Lesson, ...]:
    """Our lessons in their order."""
    folder = files(__name__)
    texts = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".toml")}
    return tuple(sorted((parse(text, name) for name, text in texts.items()), key=lambda lesson: lesson.order))


def own(folder: Path) -> tuple[list[Lesson], list[str]]:
    """The lessons in a folder's TOML files, by their order and name, and what is wrong in the files that were left out."""
    lessons, problems = [], []
    for path in islice(sorted(folder.glob("*.toml")), MOST_OWN):
        try:
            lessons.append(read(path))
        except FaultyLessonError as error:
            problems += error.problems
    return sorted(lessons, key=lambda lesson: lesson.order), problems


def with_own(added: Iterable[Lesson]) -> list[Lesson]:
    """Our lessons, then `added`; of two with one slug the later counts, at the place of the first."""
    return list({lesson.slug: lesson for lesson in (*catalogue(), *added)}.values())


def on_this_server() -> tuple[list[Lesson], list[str]]:
    """Our lessons and those in the folder `lessons` of ISOVIZ_HOME, and what is wrong in the files that were left out."""
    own_lessons, problems = own(home() / "lessons")
    return with_own(own_lessons), problems
