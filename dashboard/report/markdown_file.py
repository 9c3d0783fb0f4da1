"""A report as Markdown with PNG figures, in one zip file."""

from __future__ import annotations

import functools
import io
import re
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from plotly.io.json import to_json_plotly

from dashboard.report.document import Block, Code, Document, Heading, Matrix, Numbers, Paragraph, Picture, Points
from dashboard.shared import downloads
from isoviz.errors import IsoVizError

WIDTH = 900
"""Width in pixels of a figure; the PNG has twice as many."""
_drawing = threading.Lock()
"""One browser at a time, because each needs hundreds of megabytes."""
NO_BROWSER = "needs Chrome or Chromium on the server to draw the PNG files"


def render(document: Document) -> bytes:
    """A zip with `report.md`, a PNG and the data (JSON of plotly) of each figure, and a CSV of each table.

    Raises:
        IsoVizError: there are figures but no browser to draw them.
    """
    pictures = draw(document.pictures)
    parts = [f"# {_text(document.title)}", _text(document.about)]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as files:
        tables = figures = 0
        for block in document.blocks:
            if isinstance(block, Picture):
                name = f"figure-{figures + 1}"
                files.writestr(f"{name}.png", pictures[figures])
                files.writestr(f"{name}.json", to_json_plotly(block.figure))
                parts.append(f"**{_text(block.title)}**\n\n![{_text(block.words)}]({name}.png)")
                figures += 1
                continue
            if isinstance(block, Numbers):
                tables += 1
                files.writestr(f"table-{tables}.csv", downloads.csv(block.frame))
            parts.append(_markdown(block))
        files.writestr("report.md", "\n\n".join(parts) + "\n")
    return packed.getvalue()


@functools.cache
def can_draw() -> bool:
    """Whether this machine has a browser that kaleido finds."""
    try:
        from choreographer.browsers.chromium import Chromium
    except ImportError:
        return False
    return Chromium.find_browser(skip_local=False) is not None


def draw(pictures: list[Picture]) -> list[bytes]:
    """Each figure as PNG, by kaleido in a browser of this machine; nothing is fetched."""
    if not pictures:
        return []
    import kaleido
    from choreographer.errors import BrowserClosedError, BrowserFailedError, ChromeNotFoundError

    with tempfile.TemporaryDirectory(prefix="isoviz-report-") as folder:
        files = [Path(folder) / f"{index}.png" for index in range(len(pictures))]
        orders = [
            {
                "fig": _on_white(picture),
                "path": str(file),
                "opts": {"format": "png", "width": WIDTH, "height": picture.height, "scale": 2},
            }
            for picture, file in zip(pictures, files, strict=True)
        ]
        try:
            with _drawing:
                # without mathjax, which would be loaded from another host
                kaleido.write_fig_from_object_sync(orders, kopts={"mathjax": False})
        except (ChromeNotFoundError, BrowserFailedError, BrowserClosedError):
            raise IsoVizError(NO_BROWSER) from None
        return [file.read_bytes() for file in files]


def _on_white(picture: Picture) -> dict[str, Any]:
    spec = picture.spec()
    spec["layout"] |= {
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"color": "#18222d", "family": "sans-serif"},
    }
    return spec


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {_text(text)}"
        case Paragraph(text, kind):
            return f"> **{_text(text)}**" if kind == "warning" else _text(text)
        case Points(lines):
            return "\n".join(f"- {_text(line)}" for line in lines)
        case Code(title, text):
            return f"**{_text(title)}**\n\n{_fenced(text)}"
        case Numbers(title, _, notes):
            cells = [[_text(text) for text, _ in line] for line in block.cells()]
            table = downloads.markdown_table([_text(name) for name in block.header], cells)
            return "\n\n".join([f"**{_text(title)}**", table, *map(_text, notes)])
        case Picture() | Matrix():
            raise AssertionError("a picture is a file of its own")


def _text(text: str) -> str:
    """Escaped text on one line, because names and labels are user input."""
    escaped = "".join(f"\\{sign}" if sign in "\\`*_[]<>#" else sign for sign in text)
    return " ".join(escaped.split())


def _fenced(text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
