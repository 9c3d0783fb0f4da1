"""The lessons' scripts, styles and texts: the same for a page of the app and for a file that needs no server."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dashboard.components import bundle
from isoviz.home import home
from isoviz.lessons import Lesson, catalogue, own


@functools.cache
def script() -> str:
    """What runs them; it needs the playground's script before it."""
    return bundle("lessons/values.js", "lessons/runner.js")


@functools.cache
def styles() -> str:
    return bundle("lessons/lessons.css")


def on_this_server() -> tuple[list[Lesson], list[str]]:
    """Our lessons and those in the folder `lessons` of ISOVIZ_HOME, and what is wrong in files that were left out."""
    found, problems = own(home() / "lessons")
    return with_own(found), problems


def with_own(added: Sequence[Lesson]) -> list[Lesson]:
    """Our lessons, then `added`; of two with one slug the later counts, at the place of the first."""
    return list({lesson.slug: lesson for lesson in (*catalogue(), *added)}.values())


def documents(lessons: Sequence[Lesson]) -> list[dict[str, Any]]:
    """Lessons as the browser reads them."""
    return [lesson.document() for lesson in lessons]
