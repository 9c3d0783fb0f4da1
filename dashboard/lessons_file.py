"""The lessons and the playground as one self-contained HTML file: `python -m isoviz lessons --out FILE.html`."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dashboard.components.lessons import source as lessons_source
from dashboard.components.playground import source
from isoviz.lessons import Lesson, with_own
from isoviz.lessons.reading import read

_HERE = Path(__file__).parent


def render(own: Sequence[Lesson] = ()) -> str:
    """The HTML file. The user's lessons follow ours; one with the same slug replaces ours."""
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("lessons_file.html.j2").render(
        styles=Markup(f"{source.styles()}\n{lessons_source.styles()}"),
        light=Markup(_colours("light")),
        dark=Markup(_colours("dark")),
        script=Markup(f"{source.script()}\n{lessons_source.script()}"),
        words=Markup(_inert(source.words())),
        lessons=Markup(_inert(lessons_source.documents(with_own(own)))),
    )


def _inert(data: Any) -> str:
    """JSON that cannot close its script element."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _colours(mode: str) -> str:
    """The app's theme as CSS variables for its components."""
    theme = tomllib.loads((_HERE.parent / ".streamlit" / "config.toml").read_text("utf-8"))["theme"][mode]
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


if __name__ == "__main__":
    sys.stdout.buffer.write(render([read(Path(name)) for name in sys.argv[1:]]).encode())
