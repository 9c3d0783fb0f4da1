"""word2vec's binary file: `n d`, then each word, a blank and d float32."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from isoviz.errors import shortened
from isoviz.tables.protocol import Format, Glimpse, refused, vectors_table

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER: Final = re.compile(rb"(\d{1,12}) (\d{1,6})\n")
_NUMBERS: Final = 2**21
"""Numbers of a piece."""
_LONGEST: Final = 2**12
"""Most bytes of a word."""


def _recognise(glimpse: Glimpse) -> bool:
    return _HEADER.match(glimpse.start) is not None and glimpse.text is None


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    shown = f"'{shortened(path.name)}'"
    with path.open("rb") as stream:
        header = _HEADER.fullmatch(stream.readline())
        assert header is not None  # recognised by it
        n, d = int(header[1]), int(header[2])
        rest, place, done = b"", 0, 0
        while done < n:
            size = min(max(1, _NUMBERS // max(1, d)), n - done)
            words: list[str] = []
            points = np.empty((size, d), dtype=np.float32)
            for row in range(size):
                if len(rest) - place < _LONGEST + 4 * d:
                    rest, place = rest[place:] + stream.read(2**22), 0
                blank = rest.find(b" ", place, place + _LONGEST)
                end = blank + 1 + 4 * d
                if blank < 0 or end > len(rest):
                    raise refused(f"{shown} is cut off or damaged: word {done + row + 1} of {n:,} is incomplete")
                words.append(rest[place:blank].lstrip(b"\n").decode("utf-8", "replace"))
                points[row] = np.frombuffer(rest, "<f4", d, blank + 1)
                place = end
            done += size
            table = vectors_table(points, {"id": words, "text": words})
            yield table if columns is None else table.select(columns)


FORMATS = Format(
    "word2vec", "word2vec's binary file", (".bin",), _recognise, "vectors", batches=_batches,
    vectors="words (`id` and `text`) and their vectors in float32", texts="the words",
)  # fmt: skip
