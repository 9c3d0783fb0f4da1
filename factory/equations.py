"""A hook of the documentation site: equations become MathML, which browsers draw without a script."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(page: str, /, **_: Any) -> str:
    """The page's HTML with each equation that pymdownx.arithmatex has marked as MathML."""
    return _EQUATION.sub(_mathml, page)


def _mathml(match: re.Match[str]) -> str:
    if match[1] == "span":
        return convert(html.unescape(match[2]), display="inline")
    # wide ones scroll, with the keyboard too
    return convert(html.unescape(match[2]), display="block").replace("<math ", '<math tabindex="0" ', 1)
