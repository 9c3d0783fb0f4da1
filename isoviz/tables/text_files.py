"""Tables in text files: CSV, TSV and JSON lines, with the row or line of every fault."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isoviz.errors import DataError, shortened

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
_NUMBER: Final = r"^\s*[+-]?(\d+{0}?\d*|{0}\d+)([eE][+-]?\d+)?\s*$"
_CODE: Final = r"^\s*[+-]?0\d"
_TRUTH: Final = r"^(true|True|TRUE|false|False|FALSE)$"
_EXCEL: Final = re.compile(r"sep=(.)\s*")
_DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_DECIMAL_POINT: Final = re.compile(r"\s*[+-]?\d*\.\d+\s*")
_END: Final = "\0end"
"""A line after the last one: part of a cell if the file ends within quotes."""

csv.field_size_limit(2**24)  # characters


# ------------------------------------------------------------------------------------------------------- CSV and TSV


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

    def too_many_cells(self, path: Path, row: int) -> DataError:
        """The error of a row, counted from 1, that has more cells than the header."""
        return DataError(
            f"data: {path.name}: row {row} has more cells than the header ({len(self.names)}); put texts that contain "
            f"{_SEPARATORS[self.separator]} in double quotes",
            field="data",
        )


def _records(lines: Iterable[str], separator: str, quoted: bool) -> Iterator[list[str]]:
    """The cells of each line, without lines that are empty or only spaces."""
    reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    return (cells for cells in reader if len(cells) > 1 or (cells and (not cells[0] or cells[0].strip(" "))))


def csv_layout(path: Path, quoted: bool = True) -> CsvLayout:
    """The layout, from the first two lines.

    Raises:
        DataError: there is no line, the beginning is not UTF-8, or the first row has more cells than the header.
    """
    try:
        return _layout(path, quoted)
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def _layout(path: Path, quoted: bool) -> CsvLayout:
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
        raise DataError(f"data: {path.name} is empty", field="data")
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
    layout = CsvLayout(separator, tuple(_distinct_names(written)), 1, blank, extra == 1, quoted, commas)
    if extra > 1 or (layout.extra and first[-1] != ""):
        raise layout.too_many_cells(path, 1)
    return layout


def _distinct_names(cells: Sequence[str]) -> list[str]:
    """Column names as pandas gives them: `Unnamed: 0` for an empty cell, `x.1` for a second x unless a column is called that."""
    written = [cell or f"Unnamed: {place}" for place, cell in enumerate(cells)]
    taken = set(written)
    counts: Counter[str] = Counter()
    names = []
    for base in written:
        name = base
        if counts[base]:
            name = next(name for number in count(counts[base]) if (name := f"{base}.{number}") not in taken)
            taken.add(name)
        counts[base] += 1
        names.append(name)
    return names


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
    commas = DECIMAL_COMMAS if layout.commas else None
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
            table = pa.Table.from_batches([batch]).replace_schema_metadata(commas)
            if layout.extra:
                beyond = table[_EXTRA].is_valid().to_numpy()
                if beyond.any():
                    raise layout.too_many_cells(path, rows + int(beyond.argmax()) + 1)
                table = table.drop_columns(_EXTRA)
            if len(names) == 1:  # elsewhere a line of spaces is a row of another length
                table = table.filter(pc.invert(pc.fill_null(pc.match_substring_regex(table[0], "^ +$"), False)))
            rows += table.num_rows
            yield table
    _require_closed_quotes(path, layout)


def _require_closed_quotes(path: Path, layout: CsvLayout) -> None:
    """Raise `DataError` if the file ends within quotes: what follows the quote was read as one cell."""
    if not layout.quoted:
        return
    with path.open("rb") as content:
        if not any(b'"' in block for block in iter(lambda: content.read(BATCH), b"")):
            return
    row, closed = -layout.header, False
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        for _ in range(layout.blank):
            lines.readline()
        try:
            for cells in _records(chain(lines, ["\n", _END]), layout.separator, quoted=True):
                row, closed = row + 1, cells == [_END]
        except csv.Error:  # the cell is too long
            row, closed = row + 1, False
    if not closed:
        place = f"row {row}" if row else "the header"
        raise DataError(f"data: {path.name}: {place} has a double quote that is never closed", field="data")


def read_csv(path: Path, rows: int | None = None, as_text: Collection[str] = ()) -> pa.Table:
    """A whole CSV or TSV file, or its first rows. Columns of numbers are converted, unless their cells are codes such as 01.

    In a TSV file quotes are plain characters if reading them as quotes fails or makes cells run over lines.

    Args:
        as_text: columns in lower case whose cells stay as they are written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if path.suffix.lower() != ".tsv":
        table = _cells(path, csv_layout(path), rows)
    else:
        try:
            table = _cells(path, csv_layout(path), rows)
            runs_over_lines = any(pc.any(pc.match_substring(column, "\n")).as_py() for column in table.columns)
        except (pa.ArrowInvalid, DataError):
            runs_over_lines = True
        if runs_over_lines:
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

    pieces: list[pa.Table] = []
    try:
        for table in csv_batches(path, layout):
            pieces.append(table)
            if rows is not None and sum(piece.num_rows for piece in pieces) >= rows:
                break
    except pa.ArrowInvalid:  # rows of unequal length, or another encoding
        pieces = [_padded(path, layout, rows)]
    if not pieces:
        return pa.table({name: pa.array([], pa.string()) for name in layout.names})
    return pa.concat_tables(pieces).slice(0, rows)


def _padded(path: Path, layout: CsvLayout, rows: int | None) -> pa.Table:
    """The same cells, read slowly: rows that are too short are filled up, and faults are named."""
    import pyarrow as pa

    width = len(layout.names)
    records: list[list[str | None]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for _ in range(layout.blank):
                lines.readline()
            written = islice(_records(lines, layout.separator, layout.quoted), layout.header, None)
            for number, record in enumerate(written, 1):
                if len(records) == rows:
                    break
                if any(record[width:]):
                    raise layout.too_many_cells(path, number)
                records.append([cell or None for cell in record[:width]] + [None] * (width - len(record)))
            else:
                _require_closed_quotes(path, layout)
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    columns = zip(*records, strict=True) if records else [()] * width
    commas = DECIMAL_COMMAS if layout.commas else None
    arrays = {name: pa.array(cells, pa.string()) for name, cells in zip(layout.names, columns, strict=True)}
    return pa.table(arrays, metadata=commas)


def _not_utf8(path: Path) -> DataError:
    """The error of a file with a byte that is not UTF-8, with its position."""
    offset = 0
    with path.open("rb") as lines:
        for line in lines:
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} at position {offset + error.start}"
                return DataError(f"data: {path.name} is not UTF-8 ({byte}); save it as UTF-8", field="data")
            offset += len(line)
    raise AssertionError(path)


def _typed(column: pa.ChunkedArray, commas: bool) -> pa.ChunkedArray:
    """A column of text as numbers, if all its cells are numbers and none is a code: 01 differs from 1. As Booleans, if all its
    cells are true or false."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column.cast(pa.float64())
    pattern = _NUMBER.replace("{0}", "," if commas else r"\.")
    if not pc.all(pc.match_substring_regex(column.slice(0, 100), pattern)).as_py():
        return _truths_or_text(column)
    written = pc.replace_substring(column, ",", ".") if commas else column
    try:
        numbers = written.cast(pa.float64())
    except pa.ArrowInvalid:
        if not pc.all(pc.match_substring_regex(column, pattern)).as_py():
            return _truths_or_text(column)
        written = pc.utf8_trim_whitespace(written)
        numbers = written.cast(pa.float64())
    if pc.any(pc.is_nan(numbers)).as_py():  # the word nan
        return column
    if not pc.all(pc.equal(numbers, pc.floor(numbers))).as_py():
        return numbers
    if pc.any(pc.match_substring_regex(column, _CODE)).as_py():
        return column
    digits = pc.utf8_ltrim(written, characters="+")
    for kind in (pa.int64(), pa.uint64()):
        with contextlib.suppress(pa.ArrowInvalid):  # 1.0 is no integer, and some are beyond 64 bits
            return digits.cast(kind)
    return numbers


def _truths_or_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_truth = all(pc.all(pc.match_substring_regex(part, _TRUTH)).as_py() for part in (column.slice(0, 100), column))
    return column.cast(pa.bool_()) if is_truth else column


# -------------------------------------------------------------------------------------------------------- JSON lines


class _RepeatedKeyError(Exception):
    """A key that occurs twice in a JSON object."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _RepeatedKeyError(next(key for key, times in counts.items() if times > 1))
    return content


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file. Raises `DataError` with the number of an invalid line."""
    decode = json.JSONDecoder(object_pairs_hook=_distinct).decode  # `json.loads` would make one per line
    for number, line in enumerate(stripped_lines(path), start=1):
        if not line:
            continue
        problem = None
        try:
            value = decode(line)
            if not isinstance(value, dict):
                problem = "not an object"
            elif "\\u" in line:  # JSON can write half of a character, which nothing can store or show
                json.dumps(value, ensure_ascii=False).encode()
        except _RepeatedKeyError as error:
            problem = f"an object with two keys '{shortened(str(error))}'"
        except UnicodeEncodeError:
            problem = "an object with half a character (a lone surrogate)"
        except (ValueError, RecursionError):
            problem = "not JSON"
        if problem:
            raise DataError(f"data: {path.name} cannot be read as jsonl: line {number} is {problem}", field="data")
        yield value


def stripped_lines(path: Path) -> Iterator[str]:
    """The lines of a text file without blanks around them. Raises `DataError` if it is not UTF-8."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            yield from map(str.strip, lines)
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def table_of(objects: Sequence[dict[str, Any]], before: int = 0, columns: Sequence[str] | None = None) -> pa.Table:
    """JSON objects as a table.

    Args:
        before: rows of the file before these.
        columns: the table's columns; None for all that occur.

    Raises:
        DataError: the first value of another type than the earlier ones of its column.
    """
    import pyarrow as pa

    arrays = {}
    for name in columns or dict.fromkeys(key for line in objects for key in line):
        values = [line.get(name) for line in objects]
        try:
            arrays[name] = pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            if all(value is None or type(value) in (int, float) for value in values):
                arrays[name] = pa.array([value and float(value) for value in values], from_pandas=True)
                continue
            kinds = [(row, type(value).__name__) for row, value in enumerate(values, before + 1) if value is not None]
            row, kind = next((place for place in kinds if place[1] != kinds[0][1]), kinds[0])
            raise DataError(
                f"data: row {row}, column '{shortened(name)}': a {kind} where earlier rows have another type",
                field="data",
            ) from None
    return pa.table(arrays)
