"""Words with their vectors as text: GloVe, word2vec and fastText, with or without a header; and matrices as numpy.savetxt writes.

Blocks of some MiB are cut at line ends. pyarrow parses a block; if a line has more cells than the others, because its word contains
blanks, the block is cut line by line from the right.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from isoviz.errors import shortened
from isoviz.tables.protocol import Format, Glimpse, refused, vectors_table

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK: int = 8 * 2**20
"""Bytes of text parsed at a time."""
_START: Final = 2**18
_HEADER: Final = re.compile(r"\s*(\d+)[ \t]+(\d+)(?:[ \t]+\d+)?\s*")
_LOOKED_AT: Final = 25
"""Lines that decide whether a file holds vectors."""


@dataclass(frozen=True)
class _Layout:
    """How lines are cut.

    Attributes:
        separator: blank or tab.
        d: numbers at the end of a line.
        header: whether the first line holds counts.
        words: whether a word precedes the numbers.
        tail: what ends the lines before their newline.
    """

    separator: str
    d: int
    header: bool
    words: bool
    tail: bytes


def _layout(start: str, complete: bool) -> _Layout | None:
    """The layout that the first lines have in common; None if they are no vectors, such as sentences with numbers."""
    whole = start.split("\n")[: _LOOKED_AT + 1]
    lines = [line.rstrip() for line in (whole if complete else whole[:-1])]
    tail = whole[1][len(whole[1].rstrip()) :].encode() if len(whole) > 1 else b""
    while lines and not lines[-1]:
        lines.pop()
    counts = _HEADER.fullmatch(lines[0]) if lines else None
    rows = lines[1:] if counts else lines
    if len(rows) < (1 if counts else 2) or not all(rows):
        return None
    separator = "\t" if all(line.count("\t") > 1 for line in rows) else " "
    cells = [line.split(separator) for line in rows]
    if counts:
        d = int(counts[2])
    else:
        widths = [len(row) for row in cells]
        d = max(set(widths), key=widths.count) - 1
    if not counts and d == 1 and all(map(_is_fraction, (cell for row in cells for cell in row))):
        return _Layout(separator, 2, header=False, words=False, tail=tail)
    if d < 2 or any(len(row) <= d or not all(map(_is_number, row[-d:])) for row in cells):
        return None
    if not counts:
        first_numbers = [cell for row in cells for cell in row[-d:][:8]]
        if 2 * sum(map(_is_fraction, first_numbers)) < len(first_numbers):
            return None  # counts and years at the end of sentences
        if all(len(row) == d + 1 and _is_fraction(row[0]) for row in cells):
            return _Layout(separator, d + 1, header=False, words=False, tail=tail)
    return _Layout(separator, d, bool(counts), words=True, tail=tail)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_fraction(cell: str) -> bool:
    return _is_number(cell) and any(sign in cell for sign in ".eE")


def _recognise(glimpse: Glimpse) -> bool:
    text = glimpse.text if glimpse.ending in FORMATS.endings else None
    return text is not None and _layout(text, complete=len(glimpse.start) < _START) is not None


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    done, size = 0, path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(_START)
        layout = _layout(start.decode("utf-8-sig", "replace"), complete=len(start) == size)
        if layout is None:
            raise refused(f"'{shortened(path.name)}' holds no words with vectors")
        stream.seek(start.find(b"\n") + 1 if layout.header else 3 * start.startswith(b"\xef\xbb\xbf"))
        block_size = BLOCK
        while block := stream.read(block_size):
            end = len(block) if stream.tell() == size else block.rfind(b"\n") + 1
            stream.seek(end - len(block), io.SEEK_CUR)
            block_size = BLOCK if end else 2 * block_size  # a line may be longer than the block
            if not end or (len(block) < 9 and not block.strip()):
                continue
            table = _parsed(path, memoryview(block)[:end], layout, done)
            done += table.num_rows
            yield table if columns is None else table.select(columns)


def _parsed(path: Path, lines: memoryview, layout: _Layout, before: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv

    names = (["word"] if layout.words else []) + [str(place) for place in range(layout.d)]
    text = lines if not layout.tail else bytes(lines).replace(layout.tail + b"\n", b"\n")
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            pa.csv.ReadOptions(column_names=names, block_size=2**22),
            pa.csv.ParseOptions(delimiter=layout.separator, quote_char=False),
            pa.csv.ConvertOptions(
                column_types={name: pa.float32() for name in names} | ({"word": pa.string()} if layout.words else {}),
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        words, points = _line_by_line(path, bytes(text).decode("utf-8", "replace"), layout, before)
    else:
        words = table["word"].combine_chunks() if layout.words else None
        points = np.empty((table.num_rows, layout.d), dtype=np.float32)
        for place, column in enumerate(table.columns[-layout.d :]):
            points[:, place] = column.to_numpy()
    return vectors_table(points, {"id": words, "text": words} if words is not None else {})


def _line_by_line(path: Path, text: str, layout: _Layout, before: int) -> tuple[pa.Array | None, np.ndarray]:
    import pyarrow as pa

    words, rows = [], []
    for number, line in enumerate(filter(str.strip, text.split("\n")), before + 1):
        word, *cells = (
            line.rstrip().rsplit(layout.separator, layout.d) if layout.words else ["", *line.split(layout.separator)]
        )
        try:
            values = np.array(cells, dtype=np.float32)
        except ValueError:
            values = np.empty(0, dtype=np.float32)
        if len(values) != layout.d:
            raise refused(
                f"'{shortened(path.name)}': row {number} ('{shortened(word, 30)}') does not end in {layout.d} numbers"
            )
        words.append(word)
        rows.append(values)
    return pa.array(words, pa.string()) if layout.words else None, np.stack(rows)


FORMATS = Format(
    "words", "word vectors as text", (".txt", ".vec", ".glove"), _recognise, "vectors", batches=_batches,
    vectors="a word (`id` and `text`) and its numbers per line, with or without a header: GloVe, word2vec, fastText; numpy's text",
    texts="the words", compressible=True,
)  # fmt: skip
