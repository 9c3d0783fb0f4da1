"""A page saved as one HTML file: its figures and tables, read back."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Saved:
    """Figures as plotly's JSON, what draws matrices, tables by title, and texts to copy by title."""

    figures: list[dict[str, Any]]
    matrices: list[dict[str, str]]
    tables: dict[str, pd.DataFrame]
    codes: dict[str, str]


def saved(page: bytes | str) -> Saved:
    text = page.decode() if isinstance(page, bytes) else page
    assert "default-src 'none'" in text  # it can request nothing
    body = text.split("<body>")[1].split("<script>")[0]
    figures, matrices = (
        [json.loads(html.unescape(spec)) for spec in re.findall(rf'data-{kind}="([^"]*)"', body)]
        for kind in ("figure", "matrix")
    )
    titled = re.findall(r"<h3>([^<]*)</h3>\s*<div class=\"wide\"[^>]*>(<table>.*?</table>)", body, re.DOTALL)
    tables = {html.unescape(title): pd.read_html(StringIO(table))[0] for title, table in titled}
    codes = {
        html.unescape(title): html.unescape(code)
        for title, code in re.findall(r"<h3>([^<]*)</h3><pre[^>]*>(.*?)</pre>", body, re.DOTALL)
    }
    return Saved(figures, matrices, tables, codes)
