"""The columns of a table that hold vectors: a column of lists or one column per dimension, beside texts, labels and ids.

A table larger than memory is decoded batch by batch into an unnamed temporary file, which is then memory-mapped: further passes
over the vectors read it in blocks, like a large .npy file.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import re
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary
from isoviz.errors import InputError, listed, shortened
from isoviz.home import home, make_private
from isoviz.tables import arrays, formats, stores, text_files

if TYPE_CHECKING:
    import pyarrow as pa

NAMES: Final = {
    "id": ("id", "_id", "ids"),
    "text": ("text", "sentence", "texts"),
    "label": ("label", "labels"),
    "group": ("group", "groups"),
}
"""Column of a set → names by which it is recognised in a file."""
AS_TEXT: Final = (*NAMES["id"], *NAMES["text"])
"""Columns whose cells in a text file stay as they are written."""
STREAM_ABOVE: int = 64 * 2**20
"""Largest table file in bytes that is decoded as a whole."""
_BATCH: int = 16 * 2**20
"""Bytes of vectors decoded at a time."""
_FIRST_ROWS: Final = 2_000
"""Number of first rows that determine the columns."""
_INDEX: Final = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names of columns in which pandas writes row numbers."""
_FEWEST_ROWS: Final = 8
"""Rows from which a column of rising numbers is no accident."""
_LARGE: Final = 1e4
"""Ratio to the other columns' median from which a column has another scale; rogue dimensions of models stay below it."""


def points_of(name: str, column: str | None, field: str) -> tuple[NDArray[Any], list[str]]:
    """The vectors of a table, (n, d), and their columns; of a large one, a read-only map of a temporary file that lives as long as it.

    Args:
        name: the file, `hub:owner/name:split` or the URL of a store.
        column: see `isoviz.vectors.Columns.points`.

    Raises:
        InputError: like `isoviz.vectors.read`; for a large file, also for non-finite numbers.
    """
    if stores.is_store(name):
        with stores.opened(name, field) as rows:
            names = [rows.column]
            return _spooled(rows.pieces, names, field), names
    path = boundary.file(name, field) if formats.remote(name) is None else None
    if path is None or path.stat().st_size <= STREAM_ABOVE or path.suffix.lower() not in formats.STREAMED:
        table = formats.read(name, field, AS_TEXT)  # refuses JSON lines that are too large
        names = _vector_columns(table, column, field)
        return values_of(table, names, field), names
    with formats.naming_field(field), formats.parsing(path):
        first = formats.file_table(path, _FIRST_ROWS, AS_TEXT)
        if not len(first):
            return np.empty((0, 0), dtype=np.float32), []
        names = _vector_columns(first, column, field)
        rows = max(1, _BATCH * len(first) // max(1, first.select(names).nbytes))
        return _spooled(formats.batches(path, names, rows), names, field), names


def _vector_columns(table: pa.Table, column: str | None, field: str) -> list[str]:
    return dimensions_of(table, column, set(places_of(table.column_names, {}, field).values()), field)


def _spooled(batches: Iterator[pa.Table], names: list[str], field: str) -> NDArray[Any]:
    """Write the vectors of all batches into one file, and map it."""
    rows, kind = 0, None
    make_private(home())
    with tempfile.TemporaryFile(dir=home()) as spool:  # not in /tmp, which may be in memory
        for table in batches:
            if not table.num_rows:
                continue
            try:
                points = values_of(table, names, field)
            except BadCellError as error:
                raise error.moved(rows) from None
            kind = kind or (points.dtype, points.shape[1])
            if points.shape[1] != kind[1]:
                problem = f"{points.shape[1]} numbers where earlier rows have {kind[1]}"
                raise BadCellError(rows, names[0], problem, field)
            arrays.check_finite(points, field, before=rows)
            spool.write(np.ascontiguousarray(points, dtype=kind[0]).data)
            rows += len(points)
        if kind is None:
            return np.empty((0, 0), dtype=np.float32)
        spool.flush()
        return np.memmap(spool, dtype=kind[0], mode="r", shape=(rows, kind[1]))


# --------------------------------------------------------------------------------------------------- which columns


def places_of(names: list[str], given: Mapping[str, str | None], field: str) -> dict[str, str]:
    """Column of a set → column of the table. Requested columns must exist."""
    lower = {name.lower(): name for name in reversed(names)}
    places = {}
    for column, usual in NAMES.items():
        wanted = given.get(column)
        if wanted is not None:
            if wanted not in names:
                raise InputError(
                    f"{field}: the table has no column '{shortened(wanted)}' for {column} (it has: {listed(names, 120)})",
                    field=field,
                )
            places[column] = wanted
        elif (match := next((lower[usual_name] for usual_name in usual if usual_name in lower), None)) is not None:
            places[column] = match
    return places


def dimensions_of(table: pa.Table, requested: str | None, taken: set[str], field: str) -> list[str]:
    """The columns of the vectors: one of lists, or one per dimension.

    Args:
        table: the first rows are enough.
        requested: a column of lists, a pattern such as `dim_*` or names with commas for one column per dimension; None: the only
            column of lists, else all columns of numbers except `taken`.
        taken: columns with another role.

    Raises:
        InputError: no such columns.
    """
    names: list[str] = table.column_names
    of_store = (table.schema.metadata or {}).get(stores.VECTORS)
    requested = of_store.decode() if of_store and requested is None else requested
    if requested is None:
        lists, numbers = list_columns(table, taken), number_columns(table, taken)
        if len(lists) > 1:
            raise InputError(
                f"{field}: {len(lists)} columns hold lists ({listed(lists, 100)}); name the one to read", field=field
            )
        selected = lists or numbers
        if not selected:
            raise InputError(
                f"{field}: no column of lists and no column of numbers (columns: {listed(names, 120) or 'none'})",
                field=field,
            )
        if odd := odd_columns(table, numbers if not lists else []):
            warnings.warn(
                f"{field}: columns that look like ids, labels or times are read as dimensions: {listed(odd)}; to leave them out, "
                "name the columns of the vectors",
                stacklevel=2,
            )
        return selected
    if requested in names:
        return [requested]
    if "," in requested:
        selected = [name_part.strip() for name_part in requested.split(",") if name_part.strip()]
        missing = [name for name in selected if name not in names]
        if missing:
            raise _no_column(missing[0], names, field)
        return selected
    selected = [name for name in names if fnmatch.fnmatchcase(name, requested)]
    if not selected:
        raise _no_column(requested, names, field)
    return selected


def list_columns(table: pa.Table, taken: Collection[str]) -> list[str]:
    """The columns with a list per row, except `taken`."""
    free = [name for name in table.column_names if name not in taken]
    return [name for name in free if _is_list(table.schema.field(name).type) or _is_written_list(table[name])]


def number_columns(table: pa.Table, taken: Collection[str]) -> list[str]:
    """The columns of numbers, except `taken` and row numbers."""
    free = [name for name in table.column_names if name not in taken and not _INDEX.fullmatch(name)]
    return [name for name in free if _holds_numbers(with_points(table, name))]


def odd_columns(table: pa.Table, names: list[str]) -> list[str]:
    """Columns unlike the other dimensions: whole numbers among fractions, numbers that only rise or fall, or ten thousand times as
    large as most."""
    points = (
        np.stack([_numbers_or_nan(with_points(table, name)) for name in names], 1)
        if len(names) > 1
        else np.empty((0, 0))
    )
    if len(points) < _FEWEST_ROWS:
        return []
    whole = (points % 1 == 0).all(axis=0)
    steps = np.diff(points, axis=0)
    monotone = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    sizes = np.median(np.abs(points), axis=0)
    large = sizes > _LARGE * max(np.median(sizes), np.finfo(float).tiny)
    odd = (whole & (whole.mean() <= 0.5)) | monotone | large
    return [name for name, is_odd in zip(names, odd, strict=True) if is_odd]


def _numbers_or_nan(column: pa.ChunkedArray) -> NDArray[np.float64]:
    import pandas as pd

    return pd.to_numeric(column.slice(0, 2_000).to_pandas(), errors="coerce").to_numpy(dtype=np.float64)


def values_of(table: pa.Table, names: list[str], field: str) -> NDArray[Any]:
    """The vectors in these columns, (n, d). Raises `BadCellError` for the first cell that is not a number."""
    (first, *others) = names
    if not others and (_is_list(table.schema.field(first).type) or _is_written_list(table[first])):
        return _of_lists(table[first], first, field)
    return _of_columns(table, names, field)


def _no_column(name: str, names: list[str], field: str) -> InputError:
    return InputError(f"{field}: no column '{shortened(name)}' (available: {listed(names, 120)})", field=field)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)


def _first_text(column: pa.ChunkedArray) -> str | None:
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    return next((value for cell in column.slice(0, 50) if (value := cell.as_py()) is not None), None)


def _is_written_list(column: pa.ChunkedArray) -> bool:
    """Whether a column of a text file contains JSON lists: `[0.1, 0.2]`."""
    first = _first_text(column)
    return first is not None and first.lstrip().startswith("[")


def _holds_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a column is a dimension: numbers, or mostly numeric texts, so that one bad cell does not hide a dimension."""
    if _is_number(column.type):
        return True
    if _first_text(column) is None:
        return False
    import pandas as pd

    values = pd.Series(column.slice(0, 2_000).to_pylist()).dropna()
    return bool(pd.to_numeric(values, errors="coerce").notna().mean() > 0.5)


def with_points(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column in which texts of numbers have decimal points."""
    import pyarrow.compute as pc

    commas = text_files.has_decimal_commas(table) and _first_text(table[name]) is not None
    return pc.replace_substring(table[name], ",", ".") if commas else table[name]


def _of_columns(table: pa.Table, names: list[str], field: str) -> NDArray[Any]:
    import pyarrow as pa

    narrow = all(pa.types.is_float32(table.schema.field(name).type) for name in names)
    points = np.empty((table.num_rows, len(names)), dtype=np.float32 if narrow else np.float64)
    for index, name in enumerate(names):
        column = table[name]
        if _is_number(column.type):
            if column.null_count:
                raise BadCellError(_first_null(column), name, "it is empty", field)
            points[:, index] = column.cast(pa.float64(), safe=False).to_numpy()  # integers above 2^53 are rounded
        else:
            points[:, index] = _numbers_in(with_points(table, name), name, field)
    return points


def _numbers_in(column: pa.ChunkedArray, name: str, field: str) -> NDArray[np.float64]:
    import pandas as pd
    import pyarrow as pa

    if not column.null_count:
        with contextlib.suppress(pa.ArrowInvalid):
            written = np.asarray(column.cast(pa.float64()).to_numpy())
            if not np.isnan(written).any():
                return written
    values = column.to_pylist()
    numbers = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").to_numpy(dtype=np.float64)
    invalid = np.flatnonzero(np.isnan(numbers))
    if len(invalid):
        value = values[invalid[0]]
        problem = "it is empty" if value is None else f"'{shortened(value, 30)}' is not a number"
        raise BadCellError(int(invalid[0]), name, problem, field)
    return numbers


def _of_lists(column: pa.ChunkedArray, name: str, field: str) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_list(column.type):
        return _of_written_lists(column, name, field)
    inner = column.type.value_type
    if _is_list(inner):
        raise InputError(
            f"{field}: column '{shortened(name)}' holds lists of lists; expected one vector per row", field=field
        )
    if not _is_number(inner):
        raise InputError(f"{field}: column '{shortened(name)}' holds lists of {inner}, not of numbers", field=field)
    if column.null_count:
        raise BadCellError(_first_null(column), name, "it is empty", field)
    if not len(column):
        return np.empty((0, 0), dtype=np.float32)
    lengths = pc.list_value_length(column).to_numpy()
    _require_even(lengths, name, field)
    parts = []
    for chunk in column.chunks:
        values = chunk.flatten()
        wide = pa.float32() if pa.types.is_float32(inner) or pa.types.is_float16(inner) else pa.float64()
        parts.append(values.cast(wide, safe=False).to_numpy(zero_copy_only=False).reshape(len(chunk), int(lengths[0])))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _of_written_lists(column: pa.ChunkedArray, name: str, field: str) -> NDArray[Any]:
    rows = []
    for row, text in enumerate(column.to_pylist()):
        try:
            values = json.loads(text)
            rows.append(np.array(values, dtype=np.float64))
        except (TypeError, ValueError, RecursionError, OverflowError):
            problem = "it is empty" if text is None else f"'{shortened(text, 30)}' is not a list of numbers"
            raise BadCellError(row, name, problem, field) from None
        if rows[-1].ndim != 1:
            raise BadCellError(row, name, "it holds lists of lists", field)
    _require_even(np.array([len(row) for row in rows]), name, field)
    return np.stack(rows)


def _require_even(lengths: NDArray[Any], name: str, field: str) -> None:
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd):
        row = int(odd[0])
        raise BadCellError(row, name, f"{int(lengths[row])} numbers where earlier rows have {int(lengths[0])}", field)


def _first_null(column: pa.ChunkedArray) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy())[0])


class BadCellError(InputError):
    """An invalid cell."""

    def __init__(self, row: int, name: str, problem: str, field: str) -> None:
        super().__init__(f"{field}: row {row + 1}, column '{shortened(name)}': {problem}", field=field)
        self._cell = (row, name, problem, field)

    def moved(self, rows: int) -> BadCellError:
        """The same error in a table that starts this many rows earlier."""
        row, *others = self._cell
        return BadCellError(row + rows, *others)
