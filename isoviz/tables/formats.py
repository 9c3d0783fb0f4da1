"""Any table: whole, its first rows, or in batches that keep memory bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isoviz import boundary
from isoviz.errors import DataError, InputError, shortened
from isoviz.tables import hub_rows, stores, text_files

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


def remote(name: str) -> Callable[[str], pa.Table] | None:
    """How to read a table from a source that is no file: from the form field to the whole table; None if the name is a path."""
    if name.startswith(HUB):
        return lambda field: hub_rows.table(name.removeprefix(HUB), field)
    return (lambda field: stores.table(name, field)) if stores.is_store(name) else None


def title(name: str) -> str:
    """What pages and reports call a file or another source; never its password."""
    return stores.title(name) if remote(name) else Path(name).name


def read(name: str | Path, field: str, as_text: Collection[str] = ()) -> pa.Table:
    """A whole table, from a file, `hub:owner/name:split` or the URL of a store.

    Args:
        field: form field or command-line option of the file, for errors.
        as_text: columns in lower case, whose cells in a text file stay as they are written.

    Raises:
        InputError: the file is not a table.
    """
    if (source := remote(str(name))) is not None:
        return source(field)
    path = boundary.file(name, field)
    with naming_field(field):
        return file_table(path, as_text=as_text)


def file_table(path: Path, rows: int | None = None, as_text: Collection[str] = ()) -> pa.Table:
    """A table from a file, or its first rows. Raises `DataError`.

    Args:
        rows: number of first rows; None for all.
        as_text: see `read`.
    """
    import pyarrow as pa
    import pyarrow.parquet

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
            table = pa.parquet.ParquetFile(path).read() if suffix in PARQUET else _whole_arrow(path)
        require_distinct(table.column_names, path)
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
            for batch in file.iter_batches(rows, columns=columns):
                yield pa.Table.from_batches([batch])
    elif suffix in ARROW:
        with pa.OSFile(str(path)) as source:  # a memory map would count as this process's memory
            for batch in _record_batches(source)[1]:
                table = pa.Table.from_batches([batch])
                yield table if columns is None else table.select(columns)
    else:
        yield from text_files.csv_batches(path, text_files.csv_layout(path), columns)


def _whole_arrow(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        schema, found = _record_batches(source)
        return pa.Table.from_batches(list(found), schema=schema)


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
