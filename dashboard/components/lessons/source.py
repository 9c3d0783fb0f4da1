"""The lessons' scripts, styles and texts: the same for a page of the app and for a file that needs no server."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dashboard.components import bundle
from isoviz.lessons import Lesson


@functools.cache
def script() -> str:
    """What runs them; it needs the playground's script before it."""
    return bundle("lessons/values.js", "lessons/runner.js")


@functools.cache
def styles() -> str:
    return bundle("lessons/lessons.css")


def documents(lessons: Sequence[Lesson]) -> list[dict[str, Any]]:
    """Lessons as the browser reads them."""
    return [lesson.document() for lesson in lessons]
