"""Text for runs, numbers and times, on all screens."""

from __future__ import annotations

import re
import time

from isoviz.errors import printable
from isoviz.formatting import number as number
from isoviz.runs.naming import variant
from isoviz.runs.rows import RunRow

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|$~:@^=&])")
_TURNED = re.compile(
    r"(?<=http:)(?=//)|(?<=https:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)|(?<=:)(?=material/|streamlit:)", re.IGNORECASE
)
"""Places in what Streamlit turns into links and icons in spite of escapes: addresses, e-mail addresses, `:material/lock:`."""
_APART = ":gray[]"
"""Empty text, which keeps the parts of an address apart and cannot be seen or copied."""


def plain(text: str) -> str:
    """Text escaped for Markdown (labels, captions), because names and paths are user input."""
    return _MARKDOWN.sub(r"\\\1", _TURNED.sub("\0", printable(text))).replace("\0", _APART)


def unmarked(text: str) -> str:
    """Markdown with bold type and the escapes of `plain` as plain text, for files."""
    return re.sub(r"\\(.)", r"\1", text.replace("**", "").replace(_APART, ""))


def run_title(row: RunRow) -> str:
    """A run's name, with the method's parameters as symbols."""
    parameters = variant(row.config.method, row.config.params)
    return f"{row.name} ({parameters})" if parameters else row.name


def duration(seconds: float | None) -> str:
    """`42 s`, `3 min 5 s`, `2 h 10 min`; a dash for None."""
    if seconds is None:
        return "–"
    seconds_rounded = max(0, round(seconds))
    if seconds_rounded < 60:
        return f"{seconds_rounded} s"
    if seconds_rounded < 3600:
        return f"{seconds_rounded // 60} min {seconds_rounded % 60} s"
    return f"{seconds_rounded // 3600} h {seconds_rounded % 3600 // 60} min"


def moment(seconds: float | None) -> str:
    """Date and time on the server's clock, with the offset from UTC."""
    if seconds is None:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(seconds))


def size(count: int) -> str:
    """Bytes in readable units."""
    for power, unit, places in ((3, "GB", 2), (2, "MB", 1), (1, "kB", 1)):
        if count >= 1000**power:
            return f"{count / 1000**power:.{places}f} {unit}"
    return f"{count} B"


def place(row: RunRow) -> str:
    """A waiting run's position in the queue, as text."""
    if row.position is None:
        return "launched from a terminal" if row.owner else "waiting"
    return "next in the queue" if row.position == 1 else f"number {row.position} in the queue"


def cut(text: str, letters: int = 90) -> str:
    """Text on one line, cut to at most `letters` characters."""
    plain = " ".join(str(text).split())
    return plain if len(plain) <= letters else plain[: letters - 1] + "…"
