"""Parquet: the requested columns, some row groups at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables.protocol import Format, starts_with

if TYPE_CHECKING:
    import pyarrow as pa


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet

    # without a buffer, a whole row group, possibly the whole file, is read at once
    with pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
        for batch in file.iter_batches(rows, columns=columns):
            yield pa.Table.from_batches([batch])


FORMATS = Format(
    "parquet", "Parquet", (".parquet",), starts_with(b"PAR1"), "table", batches=_batches,
    vectors="a column of lists (of fixed or of equal length), or one column per dimension", texts="a column",
)  # fmt: skip
