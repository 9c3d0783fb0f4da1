"""CSV, TSV and plain lines, with the row of every fault."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isoviz.errors import DataError
from isoviz.tables.protocol import refused

if TYPE_CHECKING:
    import pyarrow as pa

DECIMAL_COMMAS: Final = {"decimal": ","}
"""Metadata of a table whose texts write numbers with decimal commas."""
BATCH: int = 16 * 2**20
"""Bytes of text decoded at a time."""
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs"}
_LONGEST_HEADER: Final = 2**24
_EXTRA: Final = "\0extra"
"""Column of what follows the last separator of a row."""
_CODE: Final = r"^\s*[+-]?0[\dxX]"
"""A number that differs from another one only as text: 01 and 1."""
_EXCEL: Final = re.compile(r"sep=(.)\s*")
_DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_DECIMAL_POINT: Final = re.compile(r"\s*[+-]?\d*\.\d+\s*")
_END: Final = "\0end"
"""A line after the last one: part of a cell if the file ends within quotes."""

csv.field_size_limit(2**24)  # characters


@dataclass(frozen=True)
class CsvLayout:
    """How the lines of a CSV or TSV file are cut.

    Attributes:
        separator: tab, comma or semicolon. A .csv file has semicolons if its header has some and no comma, or what its line `sep=;`
            (of Excel) says.
        names: of the columns: none is empty, and none occurs twice. Numbers from 1 if there is no header.
        header: lines of the header: 1, or 0 if the first line holds the numbers of a row.
        blank: lines before the header: empty ones, and Excel's.
        extra: whether the first row ends in a separator and the header does not.
        quoted: whether double quotes enclose a cell; else they are plain characters.
        commas: whether numbers are written with decimal commas: where semicolons separate, or tabs and the first row has some.
    """

    separator: str
    names: tuple[str, ...]
    header: int
    blank: int
    extra: bool
    quoted: bool
    commas: bool

    @property
    def metadata(self) -> dict[str, str] | None:
        """Of its tables."""
        return DECIMAL_COMMAS if self.commas else None

    def too_many_cells(self, path: Path, row: int) -> DataError:
        """The error of a row, counted from 1, that has more cells than the header."""
        return refused(
            f"{path.name}: row {row} has more cells than the header ({len(self.names)}); put texts that contain "
            f"{_SEPARATORS[self.separator]} in double quotes"
        )


def csv_layout(path: Path, quoted: bool = True) -> CsvLayout:
    """The layout, from the first lines. Raises `DataError` if there is none, or if the first row has more cells than the header."""
    blank, separator = 0, ""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        while (header := lines.readline(_LONGEST_HEADER)) and (
            not header.strip(" \r\n") or (not separator and (said := _EXCEL.fullmatch(header)))
        ):
            separator = said[1] if header.strip() and said else separator
            blank += 1
        second = lines.readline(_LONGEST_HEADER)
        if path.suffix.lower() == ".tsv":
            separator = "\t"
        elif not separator:
            separator = ";" if ";" in header and ("," not in header or _are_values(header.split(";"))) else ","
        records = _records(chain((header, second), lines), separator, quoted)
        written, first, next_row = next(records, []), next(records, []), next(records, [])
    if not written:
        raise refused(f"{path.name} is empty")
    has_commas = any(map(_DECIMAL_COMMA.fullmatch, first)) and not any(map(_DECIMAL_POINT.fullmatch, first))
    commas = separator == ";" or (separator == "\t" and has_commas)
    if _are_values(written):
        warnings.warn(
            f"{path.name} has no header: its first line is read as a row, and its columns are numbered", stacklevel=2
        )
        names = tuple(map(str, range(1, len(written) + 1)))
        return CsvLayout(separator, names, 0, blank, extra=False, quoted=quoted, commas=commas)
    extra = len(first) - len(written)
    if extra == 1 and separator == "\t" and first[-1] and len(next_row) in (0, len(first)):
        written, extra = ["row name" if "id" in map(str.lower, written) else "id", *written], 0  # as R writes them
    layout = CsvLayout(separator, _distinct_names(written), 1, blank, extra == 1, quoted, commas)
    if extra > 1 or (layout.extra and first[-1] != ""):
        raise layout.too_many_cells(path, 1)
    return layout


def _records(lines: Iterable[str], separator: str, quoted: bool) -> Iterator[list[str]]:
    """The cells of each line, without lines that are empty or only spaces."""
    reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    return (cells for cells in reader if len(cells) > 1 or (cells and (not cells[0] or cells[0].strip(" "))))


def _distinct_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Column names as pandas gives them: `Unnamed: 0` for an empty cell, `x.1` for a second x."""
    import pandas as pd

    header = io.StringIO()
    csv.writer(header).writerow(cells)
    return tuple(pd.read_csv(io.StringIO(header.getvalue()), dtype="str").columns)


def _are_values(cells: Iterable[str]) -> bool:
    """Whether the first line of a table is a row: mostly numbers, with decimal points or commas, that do not count the columns."""
    import pandas as pd

    numbers = pd.to_numeric(pd.Series([cell.replace(",", ".") for cell in cells], dtype="str"), errors="coerce")
    written = numbers.dropna()
    counts = len(written) > 3 or written.iloc[:1].isin([0, 1]).any()
    return 2 * len(written) > len(numbers) and not (counts and (written.diff().dropna() == 1).all())


def csv_batches(path: Path, layout: CsvLayout, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The cells of a CSV or TSV file as text, empty ones missing, some MiB at a time.

    Args:
        columns: the columns to decode; None for all.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    names = [*layout.names, *([_EXTRA] if layout.extra else [])]
    wanted = names if columns is None else [*columns, *names[len(layout.names) :]]
    rows = 0
    with pa.csv.open_csv(
        path,
        pa.csv.ReadOptions(
            block_size=BATCH, column_names=names, skip_rows=layout.blank, skip_rows_after_names=layout.header
        ),
        pa.csv.ParseOptions(
            delimiter=layout.separator,
            quote_char='"' if layout.quoted else False,
            newlines_in_values=layout.quoted,
        ),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()),
            include_columns=wanted,
            strings_can_be_null=True,
            null_values=[""],
        ),
    ) as reader:
        for batch in reader:
            table = pa.Table.from_batches([batch]).replace_schema_metadata(layout.metadata)
            if layout.extra:
                beyond = table[_EXTRA].is_valid().to_numpy()
                if beyond.any():
                    raise layout.too_many_cells(path, rows + int(beyond.argmax()) + 1)
                table = table.drop_columns(_EXTRA)
            if len(names) == 1:  # elsewhere a line of spaces is a row of another length
                table = table.filter(pc.invert(pc.fill_null(pc.match_substring_regex(table[0], "^ +$"), False)))
            rows += table.num_rows
            yield table
    if layout.quoted:  # a quote that is never closed makes one cell of all that follows
        with path.open("rb") as content:
            quotes = any(b'"' in block for block in iter(lambda: content.read(BATCH), b""))
        for _ in _slow_rows(path, layout) if quotes else ():
            pass


def _slow_rows(path: Path, layout: CsvLayout) -> Iterator[list[str]]:
    """The cells of each row, checked: too many of them, or a quote that is never closed, are a `DataError` with the row."""
    width, row = len(layout.names), -layout.header
    with path.open(encoding="utf-8-sig", newline="") as lines:
        for _ in range(layout.blank):
            lines.readline()
        for cells in _records(chain(lines, ["\n", _END]), layout.separator, layout.quoted):
            if cells == [_END]:
                return
            row += 1
            if row > 0:
                if any(cells[width:]) and _END not in cells[-1]:
                    raise layout.too_many_cells(path, row)
                yield cells
    raise refused(f"{path.name}: {f'row {row}' if row else 'the header'} has a double quote that is never closed")


def read_csv(path: Path, rows: int | None = None, as_text: Collection[str] = ()) -> pa.Table:
    """A whole CSV or TSV file, or its first rows. Columns of numbers are converted, unless their cells are codes such as 01.

    In a TSV file quotes are plain characters if reading them as quotes fails or makes cells run over lines.

    Args:
        as_text: columns in lower case whose cells stay as they are written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        table = _cells(path, csv_layout(path), rows)
        plain_quotes = path.suffix.lower() == ".tsv" and any(
            pc.any(pc.match_substring(column, "\n")).as_py() for column in table.columns
        )
    except (pa.ArrowInvalid, DataError):
        if path.suffix.lower() != ".tsv":
            raise
        plain_quotes = True
    if plain_quotes:
        table = _cells(path, csv_layout(path, quoted=False), rows)
    commas = has_decimal_commas(table)
    columns = [
        column if name.lower() in as_text else _typed(column, commas)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names, metadata=table.schema.metadata)


def has_decimal_commas(table: pa.Table) -> bool:
    """Whether the texts of a table write numbers with decimal commas."""
    return b"decimal" in (table.schema.metadata or {})


def _cells(path: Path, layout: CsvLayout, rows: int | None) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in layout.names], layout.metadata)
    pieces = [schema.empty_table()]
    try:
        for table in csv_batches(path, layout):
            pieces.append(table)
            if rows is not None and sum(piece.num_rows for piece in pieces) >= rows:
                break
    except pa.ArrowInvalid:  # rows that are too short, which are filled up, or another encoding
        width = len(layout.names)
        records = [
            [cell or None for cell in cells[:width]] + [None] * (width - len(cells))
            for cells in islice(_slow_rows(path, layout), rows)
        ]
        columns = zip(*records, strict=True) if records else [()] * width
        return pa.table([pa.array(column, pa.string()) for column in columns], schema=schema)
    return pa.concat_tables(pieces).slice(0, rows)


def _typed(column: pa.ChunkedArray, commas: bool) -> pa.ChunkedArray:
    """A column of text as numbers or Booleans, if all its cells are some and none is a code."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pc.utf8_ltrim(pc.utf8_trim_whitespace(column), characters="+")
    written = pc.replace_substring(written, ",", ".") if commas else written
    if column.null_count == len(column):
        return column.cast(pa.float64())
    others = {pa.int64(): _CODE, pa.uint64(): _CODE, pa.float64(): rf"{_CODE}|[nN][aA]", pa.bool_(): "[01]"}
    for kind, other in others.items():
        with contextlib.suppress(pa.ArrowInvalid):
            values = written.cast(kind)
            return column if pc.any(pc.match_substring_regex(written, other)).as_py() else values
    return column


def stripped_lines(path: Path) -> Iterator[str]:
    """The lines of a text file without blanks around them."""
    with path.open(encoding="utf-8-sig") as lines:
        yield from map(str.strip, lines)
