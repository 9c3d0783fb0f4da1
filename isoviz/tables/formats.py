"""Any table: whole, its first rows, or in batches that keep memory bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary, limits
from isoviz.errors import DataError, InputError, shortened
from isoviz.tables import hub_rows, text_files

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET: Final = (".parquet",)
ARROW: Final = (".arrow", ".feather", ".ipc")
SUFFIXES: Final = (*PARQUET, *ARROW, *text_files.SEPARATED, *text_files.JSON_LINES)
STREAMED: Final = (*PARQUET, *ARROW, *text_files.SEPARATED)
"""Formats of `batches`."""
HUB: Final = "hub:"
"""Prefix of a data set's name: `hub:owner/name`, `hub:owner/name:split` or `hub:owner/name/configuration:split`."""
MAX_TEXT_MB: Final = 100
"""Largest text file that is read whole. Of Parquet, only the requested columns and the row groups that hold requested rows are read."""


def read(name: str | Path, field: str, as_text: Collection[str] = ()) -> pa.Table:
    """A whole table, from a file or `hub:owner/name:split`.

    Args:
        field: form field or command-line option of the file, for errors.
        as_text: columns in lower case, whose cells in a text file stay as they are written.

    Raises:
        InputError: the file is not a table, or it exceeds a limit.
    """
    if str(name).startswith(HUB):
        return hub_rows.table(str(name).removeprefix(HUB), field)
    path = boundary.file(name, field)
    with naming_field(field):
        return file_table(path, as_text=as_text)


def file_table(path: Path, rows: int | None = None, as_text: Collection[str] = ()) -> pa.Table:
    """A table from a file, or its first rows. Raises `DataError`.

    Args:
        rows: number of first rows; None for all.
        as_text: see `read`.
    """
    suffix = path.suffix.lower()
    with parsing(path):
        require_size(path, rows)
        if suffix in text_files.JSON_LINES:
            table = text_files.table_of(path, text_files.json_lines(path, rows))
        elif suffix in text_files.SEPARATED:
            table = text_files.read_csv(path, rows, as_text)
        elif rows is not None and (first := next(filter(len, batches(path, rows=max(1, rows))), None)) is not None:
            table = first.slice(0, rows)
        else:
            table = _whole_parquet(path) if suffix in PARQUET else _whole_arrow(path)
        require_distinct(table.column_names, path)
        limits.check(path.name, columns=table.num_columns, rows=len(table), cells=len(table) * table.num_columns)
        return table


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Wrap the parsing of a file: every exception becomes a `DataError` about the file."""
    with boundary.parsing(f"{path.name} cannot be read as {path.suffix[1:].lower()}", "data", DataError):
        yield


@contextmanager
def naming_field(field: str) -> Iterator[None]:
    """Make the reader's errors, which are about `data`, refer to this field."""
    try:
        yield
    except DataError as error:
        message = str(error).removeprefix("data: ")
        raise InputError(
            message if message.startswith(f"{field}: ") else f"{field}: {message}", field=field, advice=error.advice
        ) from None


def require_size(path: Path, rows: int | None = None) -> None:
    """Raise `DataError` if a file is empty, or is a text file too large to be read whole (`rows` is None)."""
    size = path.stat().st_size / 1e6
    if size == 0:
        raise DataError(f"data: {path.name} is empty", field="data")
    if size > MAX_TEXT_MB and rows is None and path.suffix.lower() not in (*PARQUET, *ARROW):
        raise DataError(
            f"data: {path.name} has {size:.0f} MB; csv and jsonl are read up to {MAX_TEXT_MB} MB, save it as parquet",
            field="data",
        )


def require_distinct(names: Sequence[str], path: Path) -> None:
    """Raise `DataError` if two columns have the same name."""
    doubled = next((name for name, count in Counter(names).items() if count > 1), None)
    if doubled is not None:
        raise DataError(f"data: {path.name} has two columns called '{shortened(doubled)}'", field="data")


def batches(path: Path, columns: list[str] | None = None, rows: int = 2_000) -> Iterator[pa.Table]:
    """A file of one of the `STREAMED` formats piece by piece; the cells of a text file as text.

    Args:
        columns: the columns to decode; None for all.
        rows: of a piece of a Parquet file; other formats have their own batches.
    """
    import pyarrow as pa
    import pyarrow.parquet

    suffix = path.suffix.lower()
    if suffix in PARQUET:
        # without a buffer, a whole row group, possibly the whole file, is read at once
        with pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            limits.check(path.name, columns=len(file.schema_arrow.names))
            for batch in file.iter_batches(rows, columns=columns):
                yield pa.Table.from_batches([batch])
    elif suffix in ARROW:
        with pa.OSFile(str(path)) as source:  # a memory map would count as this process's memory
            for batch in _record_batches(source)[1]:
                table = pa.Table.from_batches([batch])
                yield table if columns is None else table.select(columns)
    else:
        yield from text_files.csv_batches(path, text_files.csv_layout(path), columns)


def _record_batches(source: pa.NativeFile) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Schema and batches of an Arrow file or stream."""
    import pyarrow as pa

    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(index) for index in range(file.num_record_batches))


def _whole_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet

    file = pa.parquet.ParquetFile(path)
    names = file.schema_arrow.names
    rows = file.metadata.num_rows
    limits.check(path.name, columns=len(names), rows=rows, cells=rows * len(names))
    tables = row_groups(file, list(dict.fromkeys(names)), np.arange(rows), path.name)
    return pa.concat_tables(tables) if tables else file.schema_arrow.empty_table()


def _whole_arrow(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        schema, found = _record_batches(source)
        pieces, size = [], 0
        for batch in found:  # compressed batches take more memory than the file
            size += batch.nbytes
            limits.check(path.name, expanded=size)
            pieces.append(batch)
        return pa.Table.from_batches(pieces, schema=schema)


def row_groups(file: pa.parquet.ParquetFile, columns: list[str], rows: NDArray[np.int64], name: str) -> list[pa.Table]:
    """The given rows of a Parquet file, from the row groups that hold any of them, one group in memory at a time."""
    tables = []
    begin = 0
    decoded = 0
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        chosen = rows[(rows >= begin) & (rows < begin + size)] - begin
        if len(chosen):
            limits.check(name, rows=size, expanded=decoded + _declared_size(file, group, columns))
            table = file.read_row_group(group, columns=columns)
            tables.append(table if len(chosen) == size else table.take(chosen))
            decoded += tables[-1].nbytes  # repeated values take no place in a file
            limits.check(name, expanded=decoded)
        begin += size
    return tables


def _declared_size(file: pa.parquet.ParquetFile, group: int, columns: Sequence[str]) -> int:
    """Uncompressed bytes of these columns in a row group, by the file's metadata."""
    record = file.metadata.row_group(group)
    chunks = (record.column(number) for number in range(record.num_columns))
    requested = set(columns)
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if not requested.isdisjoint(
            accumulate(chunk.path_in_schema.split("."), "{}.{}".format)
        )  # `a.b` is a name, or b in a
    )
