"""How runs, numbers and times are put into words, the same on every screen."""

from __future__ import annotations

import math
import re
import time

from isoviz.errors import printable
from isoviz.runs.naming import variant
from isoviz.runs.rows import RunRow

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|$~:@^=&])")


def plain(text: str) -> str:
    """Text as it is, for places that would read it as Markdown (labels, captions): names and paths come from people."""
    return _MARKDOWN.sub(r"\\\1", printable(text))


def run_title(row: RunRow) -> str:
    """A run's name, with the method's parameters in its own symbols."""
    parameters = variant(row.config.method, row.config.params)
    return f"{row.name} ({parameters})" if parameters else row.name


def number(value: object, digits: int = 4) -> str:
    """A measured value: significant digits, whole numbers above those in full, or `undefined`."""
    if value is None:
        return "undefined"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if math.isfinite(value) and 10**digits <= abs(round(value)) < 10**15:
        return number(round(value))
    return f"{value:.{digits}g}".replace("-", "−")


def duration(seconds: float | None) -> str:
    """`42 s`, `3 min 5 s`, `2 h 10 min`; a dash for what has not happened."""
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def moment(seconds: float | None) -> str:
    """A time of day on the server's clock, with its date and offset from UTC."""
    if seconds is None:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(seconds))


def size(count: int) -> str:
    """Bytes as people read them."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.2f} GB"


def place(row: RunRow) -> str:
    """Where a waiting run stands, said plainly."""
    if row.position is None:
        return "launched from a terminal" if row.owner else "waiting"
    return "next in the queue" if row.position == 1 else f"number {row.position} in the queue"


def cut(text: str, letters: int = 90) -> str:
    """In one line of at most so many letters."""
    plain = " ".join(str(text).split())
    return plain if len(plain) <= letters else plain[: letters - 1] + "…"
