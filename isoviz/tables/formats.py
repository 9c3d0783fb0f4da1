"""Any table: whole, its first rows, or in batches that keep memory bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isoviz import input_validation
from isoviz.errors import shortened
from isoviz.tables import catalogue
from isoviz.tables.protocol import Format, Holds, refused

if TYPE_CHECKING:
    import pyarrow as pa

TABLES: Final[tuple[Holds, ...]] = ("table", "vectors", "texts")
"""What can be read as a table."""
_MAX_TEXT_MB: Final = 100
"""Largest text file that is read whole. Of Parquet, only the requested columns and the row groups that hold requested rows are read."""


def read(name: str | Path, field: str, as_text: Collection[str] = (), wanted: Sequence[Holds] = TABLES) -> pa.Table:
    """A whole table, from a file or another source (`hub:owner/name:split`).

    Args:
        field: form field or command-line option of the file, for errors.
        as_text: columns in lower case, whose cells in a text file stay as they are written.
        wanted: what the file must hold.

    Raises:
        InputError: the file is not a table.
    """
    if (source := catalogue.remote(str(name))) is not None:
        return source(field)
    path = input_validation.file(name, field)
    with catalogue.naming_field(field):
        return file_table(path, as_text=as_text, wanted=wanted)


def file_table(
    path: Path, rows: int | None = None, as_text: Collection[str] = (), wanted: Sequence[Holds] = TABLES
) -> pa.Table:
    """A table from a file, or its first rows. Raises `DataError`.

    Args:
        rows: number of first rows; None for all.
        as_text, wanted: see `read`.
    """
    format = catalogue.identified(path, *wanted)
    with catalogue.parsing(path, format), catalogue.unpacked(path, format) as plain:
        require_size(plain, format, rows)
        table = format.table(plain, rows, as_text) if format.table else _of_pieces(plain, format, rows)
        doubled = next((name for name, count in Counter(table.column_names).items() if count > 1), None)
        if doubled is not None:
            raise refused(f"{path.name} has two columns called '{shortened(doubled)}'")
        _ = table.schema.pandas_metadata  # may be damaged, which pandas would report elsewhere
        return table


def _of_pieces(path: Path, format: Format, rows: int | None) -> pa.Table:
    import pyarrow as pa

    assert format.batches is not None
    pieces: list[pa.Table] = []
    for piece in format.batches(path, None, max(1, rows or 2**16)):
        pieces.append(piece)
        if rows is not None and sum(one.num_rows for one in pieces) >= rows:
            break
    if not pieces:
        raise refused(f"'{shortened(path.name)}' contains no rows")
    table = pa.concat_tables(pieces).slice(0, rows)
    if format.holds == "vectors" and "id" in table.column_names and len(table["id"].unique()) < len(table):
        return table.drop_columns("id")  # words that occur twice name no row
    return table


def batches(path: Path, format: Format, columns: list[str] | None = None, rows: int = 2_000) -> Iterator[pa.Table]:
    """A file piece by piece; the cells of a text file as text. Raises `DataError`.

    Args:
        format: one with `batches`.
        columns: the columns to decode; None for all.
        rows: of a piece of a Parquet file; other formats may have their own.
    """
    assert format.batches is not None
    with catalogue.parsing(path, format), catalogue.unpacked(path, format) as plain:
        yield from format.batches(plain, columns, rows)


def require_size(path: Path, format: Format, rows: int | None = None) -> None:
    """Raise `DataError` if a text file is too large to be read whole (`rows` is None)."""
    size = path.stat().st_size / 1e6
    if size > _MAX_TEXT_MB and rows is None and format.compressible and format.table is not None:
        raise refused(
            f"'{shortened(path.name)}' has {size:.0f} MB; {format.title} is read up to {_MAX_TEXT_MB} MB here, save it as parquet"
        )
