"""The lessons' scripts, styles and texts, for both the app and the self-contained file."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dashboard.components import bundle
from isoviz.lessons import Lesson


@functools.cache
def script() -> str:
    """The lessons' script, to be loaded after the playground's."""
    return bundle("lessons/values.js", "lessons/runner.js")


@functools.cache
def styles() -> str:
    return bundle("lessons/lessons.css")


def documents(lessons: Sequence[Lesson]) -> list[dict[str, Any]]:
    """Lessons as JSON for the browser."""
    return [lesson.document() for lesson in lessons]
