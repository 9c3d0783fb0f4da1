"""People's own vectors, the playground and the lessons as one self-contained HTML file: `isoviz page --out FILE.html`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dashboard.components.lab import source as lab
from dashboard.components.lessons import source as lessons_source
from dashboard.components.playground import responses, source
from isoviz.lessons import Lesson, with_custom

_HERE = Path(__file__).parent


def render(
    own: Sequence[Lesson] = (),
    *,
    start: Literal["vectors", "lessons", "playground"] = "lessons",
    vectors: Mapping[str, Any] | None = None,
    encoder: bool = True,
) -> str:
    """The HTML file.

    Args:
        own: the user's lessons, which follow ours; one with the same slug replaces ours.
        start: the part that opens first.
        vectors: shown at once, as `isoviz.vectors.embedded` returns them; with `transforms`, what the page begins with.
        encoder: put the encoder of texts into the page (1.6 MB).
    """
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("standalone.html.j2").render(
        styles=Markup(f"{source.styles()}\n{responses.styles()}\n{lessons_source.styles()}\n{lab.styles()}"),
        light=Markup(colours("light")),
        dark=Markup(colours("dark")),
        script=Markup(f"{source.script()}\n{lessons_source.script()}\n{lab.script()}"),
        start=Markup(inert(start)),
        vectors=Markup(inert(vectors)),
        encoder=Markup(inert(lab.encoder() if encoder else None)),
        responses=responses.table(),
        words=Markup(inert(source.words())),
        lessons=Markup(inert(lessons_source.documents(with_custom(own)))),
    )


def inert(data: Any) -> str:
    """JSON that cannot close its script element."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def colours(mode: str) -> str:
    """The app's theme as CSS variables for its components."""
    theme = tomllib.loads((_HERE.parent.parent / ".streamlit" / "config.toml").read_text("utf-8"))["theme"][mode]
    names = {
        "background-color": theme["backgroundColor"],
        "secondary-background-color": theme["secondaryBackgroundColor"],
        "text-color": theme["textColor"],
        "border-color": theme["borderColor"],
        "primary-color": theme["primaryColor"],
        "link-color": theme["linkColor"],
        "gray-text-color": {"light": "#5b6570", "dark": "#a3adb8"}[mode],
        "chart-sequential-colors": ",".join(theme["chartSequentialColors"]),
    }
    return " ".join(f"--st-{name}: {value};" for name, value in names.items())
