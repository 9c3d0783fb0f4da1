"""The lessons: data files in this folder, read and checked by `isoviz.lessons.reading`.

A lesson asks for a guess, moves the playground's controls, shows how far off the guess was, and ends in a sentence whose claims are
checked on the shown numbers. `python -m isoviz lessons --check FILE` says what is wrong in a file of your own.
"""

from __future__ import annotations

import functools
from importlib.resources import files

from isoviz.lessons.reading import Lesson, parse

__all__ = ["Lesson", "catalogue"]


@functools.cache
def catalogue() -> tuple[Lesson, ...]:
    """Our lessons in their order."""
    folder = files(__name__)
    texts = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".toml")}
    return tuple(sorted((parse(text, name) for name, text in texts.items()), key=lambda lesson: lesson.order))
