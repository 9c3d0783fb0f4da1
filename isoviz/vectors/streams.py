"""Tables that may be larger than memory: decoded batch by batch into an unnamed temporary file, which is then memory-mapped.

Further passes over the vectors read them in blocks, like a large .npy file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary
from isoviz.home import home, make_private
from isoviz.tasks import files
from isoviz.vectors import arrays, tables

if TYPE_CHECKING:
    import pyarrow as pa

STREAM_ABOVE: int = 64 * 2**20
"""Largest table file in bytes that is decoded as a whole."""
_STREAMED: Final = (*tables.PARQUET, *tables.ARROW, ".csv", ".tsv")
_BATCH: int = 16 * 2**20
"""Bytes of vectors or text decoded at a time."""
_FIRST_ROWS: Final = 2_000
"""Number of first rows that determine the columns."""


def points_of(name: str, column: str | None, field: str) -> tuple[NDArray[Any], list[str]]:
    """The vectors of a table, (n, d), and their columns; of a large one, a read-only map of a temporary file that lives as long as it.

    Args:
        name: the file, or `hub:owner/name:split`.
        column: see `isoviz.vectors.Columns.points`.

    Raises:
        InputError: like `isoviz.vectors.read`; for a large file, also for non-finite numbers.
    """
    path = None if name.startswith(tables.HUB) else boundary.file(name, field)
    suffix = "" if path is None else path.suffix.lower()
    if path is None or path.stat().st_size <= STREAM_ABOVE or suffix not in _STREAMED:
        table = tables.read(name, field)  # refuses JSON lines that are too large
        names = _vector_columns(table, column, field)
        return tables.values_of(table, names, field), names
    with tables.naming_field(field), boundary.parsing(f"{path.name} cannot be read as {suffix[1:]}", field):
        if suffix in tables.PARQUET:
            return _spooled(_parquet(path, column, field), field)
        if suffix in tables.ARROW:
            return _spooled(_arrow(path, column, field), field)
        return _spooled(_text(path, column, field), field)


def _vector_columns(table: pa.Table, column: str | None, field: str) -> list[str]:
    places = tables.places_of(table.column_names, {}, field)
    return tables.dimensions_of(table, column, set(places.values()), field)


def _spooled(batches: Iterator[tuple[pa.Table, list[str]]], field: str) -> tuple[NDArray[Any], list[str]]:
    """Write batches with their vector columns one after another, and map the file."""
    rows, kind = 0, None
    names: list[str] = []
    make_private(home())
    with tempfile.TemporaryFile(dir=home()) as spool:  # not in /tmp, which may be in memory
        for table, names in batches:
            if not table.num_rows:
                continue
            try:
                points = tables.values_of(table, names, field)
            except tables.BadCellError as error:
                raise error.moved(rows) from None
            kind = kind or (points.dtype, points.shape[1])
            if points.shape[1] != kind[1]:
                problem = f"{points.shape[1]} numbers where earlier rows have {kind[1]}"
                raise tables.BadCellError(rows, names[0], problem, field)
            arrays.check_finite(points, field, before=rows)
            spool.write(np.ascontiguousarray(points, dtype=kind[0]).data)
            rows += len(points)
        if kind is None:
            return np.empty((0, 0), dtype=np.float32), []
        spool.flush()
        return np.memmap(spool, dtype=kind[0], mode="r", shape=(rows, kind[1])), names


def _rows_per_batch(first: pa.Table) -> int:
    return max(1, _BATCH * max(1, first.num_rows) // max(1, first.nbytes))


def _parquet(path: Path, column: str | None, field: str) -> Iterator[tuple[pa.Table, list[str]]]:
    import pyarrow as pa
    import pyarrow.parquet

    def batches(size: int, columns: list[str] | None = None) -> Iterator[pa.Table]:
        # without a buffer, a whole row group, possibly the whole file, is read at once
        with pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            for batch in file.iter_batches(size, columns=columns):
                yield pa.Table.from_batches([batch])

    first = next(batches(_FIRST_ROWS), None)
    if first is None:
        return
    tables.require_distinct(first.column_names, path)
    names = _vector_columns(first, column, field)
    for table in batches(_rows_per_batch(first.select(names)), names):
        yield table, names


def _arrow(path: Path, column: str | None, field: str) -> Iterator[tuple[pa.Table, list[str]]]:
    import pyarrow as pa

    names: list[str] = []
    with pa.OSFile(str(path)) as source:  # a memory map would count as this process's memory
        try:
            file = pa.ipc.open_file(source)
            batches: Iterator[pa.RecordBatch] = (file.get_batch(index) for index in range(file.num_record_batches))
        except pa.ArrowInvalid:
            source.seek(0)
            batches = iter(pa.ipc.open_stream(source))
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if not names:
                tables.require_distinct(table.column_names, path)
                names = _vector_columns(table, column, field)
            yield table, names


def _text(path: Path, column: str | None, field: str) -> Iterator[tuple[pa.Table, list[str]]]:
    import pyarrow as pa
    import pyarrow.csv

    layout = files.csv_layout(path)
    names = _vector_columns(tables.of_text(path, _FIRST_ROWS), column, field)
    extra = [""] if layout.extra else []
    as_written: Mapping[str, pa.DataType] = dict.fromkeys([*names, *extra], pa.string())  # so that errors name the row
    rows = 0
    with pa.csv.open_csv(
        path,
        pa.csv.ReadOptions(
            block_size=_BATCH,
            column_names=[*layout.names, *extra],
            skip_rows=layout.blank,
            skip_rows_after_names=layout.header,
        ),
        pa.csv.ParseOptions(delimiter=layout.separator, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types=as_written, include_columns=[*names, *extra], strings_can_be_null=True, null_values=[""]
        ),
    ) as reader:
        for batch in reader:
            table = pa.Table.from_batches([batch])
            for name in extra:
                beyond = table[name].is_valid().to_numpy()
                if beyond.any():
                    raise files.too_many_cells(path, layout, rows + int(beyond.argmax()) + 1)
            if layout.separator == ";":
                table = table.replace_schema_metadata(tables.DECIMAL_COMMAS)
            rows += table.num_rows
            yield table, names
