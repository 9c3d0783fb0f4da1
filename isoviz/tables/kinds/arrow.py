"""Arrow's files and streams, Feather, and Parquet, of which the requested columns of some row groups at a time are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables.protocol import Format, Glimpse, starts_with

if TYPE_CHECKING:
    import pyarrow as pa

_ENDINGS = (".arrow", ".feather", ".ipc")


def _recognise(glimpse: Glimpse) -> bool | None:
    if glimpse.start.startswith(b"ARROW1"):
        return True
    return None if glimpse.text is None and glimpse.ending in _ENDINGS else False  # a stream has no mark


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:  # a memory map would count as this process's memory
        try:
            file = pa.ipc.open_file(source)
            pieces = (file.get_batch(index) for index in range(file.num_record_batches))
        except pa.ArrowInvalid:
            source.seek(0)
            pieces = iter(pa.ipc.open_stream(source))
        for batch in pieces:
            table = pa.Table.from_batches([batch])
            yield table if columns is None else table.select(columns)


def _row_groups(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet

    # without a buffer, a whole row group, possibly the whole file, is read at once
    with pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
        for batch in file.iter_batches(rows, columns=columns):
            yield pa.Table.from_batches([batch])


FORMATS = (
    Format("arrow", "Arrow", _ENDINGS, _recognise, "table", batches=_batches, vectors="as Parquet", texts="a column"),
    Format(
        "parquet", "Parquet", (".parquet",), starts_with(b"PAR1"), "table", batches=_row_groups,
        vectors="a column of lists (of fixed or of equal length), or one column per dimension", texts="a column",
    ),
)  # fmt: skip
