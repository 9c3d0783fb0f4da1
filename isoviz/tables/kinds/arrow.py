"""Arrow's files and streams, and Feather."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables.protocol import Format, Glimpse

if TYPE_CHECKING:
    import pyarrow as pa

_ENDINGS = (".arrow", ".feather", ".ipc")


def _recognise(glimpse: Glimpse) -> bool | None:
    if glimpse.start.startswith(b"ARROW1"):
        return True
    return None if glimpse.text is None and glimpse.ending in _ENDINGS else False  # a stream has no mark


def _table(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        schema, found = _record_batches(source)
        return pa.Table.from_batches(list(found), schema=schema)


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:  # a memory map would count as this process's memory
        for batch in _record_batches(source)[1]:
            table = pa.Table.from_batches([batch])
            yield table if columns is None else table.select(columns)


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


FORMATS = Format(
    "arrow",
    "Arrow",
    _ENDINGS,
    _recognise,
    "table",
    table=_table,
    batches=_batches,
    vectors="as Parquet",
    texts="a column",
)
