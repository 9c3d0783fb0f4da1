"""Arrow's files and streams, and Feather."""

from __future__ import annotations

from collections.abc import Iterator
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


FORMATS = Format(
    "arrow", "Arrow", _ENDINGS, _recognise, "table", batches=_batches, vectors="as Parquet", texts="a column"
)
