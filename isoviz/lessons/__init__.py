"""The lessons: data files in this folder, read and validated by `isoviz.lessons.reading`.

A lesson asks for a guess, moves the playground's controls, shows how far off the guess was, and ends in a sentence whose claims are
checked on the shown numbers. `python -m isoviz lessons --check FILE` lists the problems in your own file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from isoviz.errors import InputError
from isoviz.home import home
from isoviz.lessons.reading import Lesson, parse, read

__all__ = ["Lesson", "catalogue", "custom", "on_this_server", "with_custom"]


@functools.cache
def catalogue() -> tuple[Lesson, ...]:
    """The bundled lessons in order."""
    folder = files(__name__)
    texts = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".toml")}
    return tuple(sorted((parse(text, name) for name, text in texts.items()), key=lambda lesson: lesson.order))


def custom(folder: Path) -> tuple[list[Lesson], list[str]]:
    """The lessons in a folder's TOML files, sorted by `order` and file name, and the problems in the files that were
    skipped."""
    lessons, problems = [], []
    for path in sorted(folder.glob("*.toml")):
        try:
            lessons.append(read(path))
        except InputError as error:
            problems.append(str(error))
    return sorted(lessons, key=lambda lesson: lesson.order), problems


def with_custom(added: Iterable[Lesson]) -> list[Lesson]:
    """The bundled lessons, then `added`; of two with the same slug, the later one replaces the first at its place."""
    return list({lesson.slug: lesson for lesson in (*catalogue(), *added)}.values())


def on_this_server() -> tuple[list[Lesson], list[str]]:
    """The bundled lessons and those in the folder `lessons` of ISOVIZ_HOME, and the problems in the files that were skipped."""
    added, problems = custom(home() / "lessons")
    return with_custom(added), problems
