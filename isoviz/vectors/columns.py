"""The columns of a table that hold vectors: a column of lists or one column per dimension, beside texts, labels and ids.

A table larger than memory is decoded batch by batch into an unnamed temporary file, which is then memory-mapped: further passes
over the vectors read it in blocks, like a large .npy file.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary
from isoviz.errors import InputError, listed, shortened
from isoviz.home import home, make_private
from isoviz.tables import arrays, catalogue, formats, stores, text_files
from isoviz.tables.arrays import BadRowError
from isoviz.tables.protocol import numbers_of
from isoviz.vectors import cells as cells_of

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
_INDEX: Final = re.compile(r"|Unnamed: \d+|__index_level_\d+__|row name|.+[_ .-](?:id|ID|Id)|[a-z]+I[dD]|idx|index")
"""Names of columns that count or name rows: what pandas and R write, and ids of other things."""
_VECTORS: Final = re.compile(r"(?:.*[\W_])?(?:embeddings?|emb|vectors?|vecs?)", re.IGNORECASE)
"""Names of columns that hold vectors."""
_FEWEST_ROWS: Final = 8
"""Rows from which a column of rising numbers is no accident."""
_LARGE: Final = 1e4
"""Ratio to the other columns' median from which a column has another scale; rogue dimensions of models stay below it."""


def points_of(name: str, column: str | None, field: str, skip_bad: bool = False) -> tuple[NDArray[Any], list[str]]:
    """The vectors of a table, (n, d), and their columns; of a large one, a read-only map of a temporary file that lives as long as it.

    Args:
        name: the file, or a source such as `hub:owner/name:split`.
        column: see `isoviz.vectors.Columns.points`.
        skip_bad: leave out rows without a readable vector, with a warning.

    Raises:
        InputError: like `isoviz.vectors.read`.
    """
    rows = Rows(field, skip_bad)
    if stores.is_store(name):
        with stores.opened(name, field) as found:
            return _spooled(rows, found.pieces, [found.column]), [found.column]
    path = boundary.file(name, field) if catalogue.remote(name) is None else None
    with formats.naming_field(field):
        format = None if path is None else catalogue.identified(path, "table", "vectors", "array")
    if path is None or format is None or format.batches is None or not _is_large(path):
        table = formats.read(name, field, AS_TEXT)
        names = _vector_columns(table, column, field)
        parts = list(rows.read([table], names))
        rows.finish()
        return (parts[0] if parts else np.empty((0, 0), dtype=np.float32)), names
    with formats.naming_field(field):
        first = formats.file_table(path, _FIRST_ROWS, AS_TEXT)
        if not len(first):
            return np.empty((0, 0), dtype=np.float32), []
        names = _vector_columns(first, column, field)
        size = max(1, _BATCH * len(first) // max(1, first.select(names).nbytes))
        return _spooled(rows, formats.batches(path, format, names, size), names), names


def _is_large(path: Path) -> bool:
    packed = 4 if path.suffix.lower() == catalogue.GZIP else 1
    return packed * path.stat().st_size > STREAM_ABOVE


def _vector_columns(table: pa.Table, column: str | None, field: str) -> list[str]:
    return dimensions_of(table, column, set(places_of(table.column_names, {}, field).values()), field)


def _spooled(rows: Rows, batches: Iterator[pa.Table], names: list[str]) -> NDArray[Any]:
    """Write the vectors of all batches into one file, and map it."""
    kind, n, d = None, 0, 0
    make_private(home())
    with tempfile.TemporaryFile(dir=home()) as spool:  # not in /tmp, which may be in memory
        for points in rows.read(batches, names):
            kind, n, d = kind or points.dtype, n + len(points), points.shape[1]
            spool.write(np.ascontiguousarray(points, dtype=kind).data)
        rows.finish()
        if kind is None:
            return np.empty((0, 0), dtype=np.float32)
        spool.flush()
        return np.memmap(spool, dtype=kind, mode="r", shape=(n, d))


class Rows:
    """Reads the vectors of a table's pieces, and counts the rows that have none.

    Args:
        skip_bad: leave them out, with a warning; else they are an error, raised by `finish` once all are counted.
    """

    def __init__(self, field: str, skip_bad: bool) -> None:
        self.total = 0
        self.kept: list[NDArray[np.bool_]] = []
        """Which rows have a vector, per piece."""
        self._field, self._skip = field, skip_bad
        self._first: InputError | None = None

    def read(self, tables: Iterable[pa.Table], names: list[str]) -> Iterator[NDArray[Any]]:
        """The vectors of each piece, (rows, d), finite."""
        d: int | None = None
        for table in tables:
            if not table.num_rows:
                continue
            good = np.ones(table.num_rows, dtype=bool)
            points: NDArray[Any] | None
            try:
                points = self._checked(table, names, d, self.total)
            except BadRowError as error:
                good, d = good_rows(table, names, d)
                self._first = self._first or self._error(table, names, d, int(good.argmin())) or error
                points = self._checked(table.filter(good), names, d, 0) if good.any() else None
            self.kept.append(good)
            self.total += table.num_rows
            if points is not None:
                d = points.shape[1]
                yield points

    def _error(self, table: pa.Table, names: list[str], d: int | None, row: int) -> InputError | None:
        """The error of one row."""
        try:
            self._checked(table.slice(row, 1), names, d, self.total + row)
        except BadRowError as error:
            return error
        return None

    def _checked(self, table: pa.Table, names: list[str], d: int | None, before: int) -> NDArray[Any]:
        try:
            points = values_of(table, names, self._field)
            if d and points.shape[1] != d:
                raise BadCellError(0, names[0], _unlike(points.shape[1], d), self._field)
        except BadCellError as error:
            raise error.moved(before) from None
        if points.size:
            arrays.check_finite(points, self._field, before=before)
        return points

    def finish(self) -> str:
        """The sentence on rows that were left out; empty if there are none. Raises `InputError` for them unless they may be skipped."""
        if self._first is None:
            return ""
        bad = sum(int((~good).sum()) for good in self.kept)
        have = "row has" if self.total == 1 else "rows has" if bad == 1 else "rows have"
        place = str(self._first).removeprefix(f"{self._field}: ")
        words = f"{self._field}: {bad:,} of {self.total:,} {have} no readable vector, the first is {place}"
        if not self._skip or bad == self.total:
            advice = "To leave them out: --skip-bad-rows, on pages Skip bad rows." if bad < self.total else None
            raise InputError(words, field=self._field, advice=advice)
        warnings.warn(f"{words}; left out", stacklevel=2)
        return f"{words.removeprefix(f'{self._field}: ')}; left out"


def good_rows(table: pa.Table, names: list[str], d: int | None) -> tuple[NDArray[np.bool_], int | None]:
    """Which rows have finite numbers in these columns, and d: lists of d numbers; None: of the most frequent length."""
    import pyarrow as pa

    if len(names) == 1 and (_is_list(table.schema.field(names[0]).type) or _is_written_list(table[names[0]])):
        cells = table[names[0]].to_pylist()
        lists = [cells_of.numbers_in(one) if isinstance(one, str) else one for one in cells]
        lengths = [0 if one is None else len(one) for one in lists]
        counts = Counter(filter(None, lengths)).most_common(1)
        d = d or (counts[0][0] if counts else None)
        return np.array([length == d and _all_finite(one) for one, length in zip(lists, lengths, strict=True)]), d
    columns = [with_points(table, name) for name in names]
    numbers = [
        column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if _is_number(column.type)
        else _or_nan(column)
        for column in columns
    ]
    return np.all([np.abs(one) <= arrays.LARGEST for one in numbers], axis=0), d


def _all_finite(values: Any) -> bool:
    return all(value is not None and abs(value) <= arrays.LARGEST for value in values)


def _or_nan(column: pa.ChunkedArray) -> NDArray[np.float64]:
    import pandas as pd

    return pd.to_numeric(pd.Series(column.to_pylist(), dtype="object"), errors="coerce").to_numpy(dtype=np.float64)


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
        unread = [name for name in names if _VECTORS.fullmatch(name) and name not in {*selected, *taken}]
        if unread and not lists:
            held = _first_texts(table[unread[0]]) or [table.schema.field(unread[0]).type]
            raise InputError(
                f"{field}: column '{shortened(unread[0])}' holds no vectors that can be read, but '{shortened(held[0], 40)}'; "
                f"name the columns of the vectors (columns: {listed(names, 80)})",
                field=field,
            )
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
        np.stack([_or_nan(with_points(table, name).slice(0, 2_000)) for name in names], 1)
        if len(names) > 1
        else np.empty((0, 0))
    )
    if len(points) < _FEWEST_ROWS:
        return []
    varies = points.max(axis=0) > points.min(axis=0)  # a dead dimension is none of these
    whole = (points % 1 == 0).all(axis=0) & varies
    steps = np.diff(points, axis=0)
    monotone = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    sizes = np.median(np.abs(points), axis=0)
    large = sizes > _LARGE * max(np.median(sizes), np.finfo(float).tiny)
    odd = (whole & (whole.mean() <= 0.5)) | monotone | large
    return [name for name, is_odd in zip(names, odd, strict=True) if is_odd]


def values_of(table: pa.Table, names: list[str], field: str) -> NDArray[Any]:
    """The vectors in these columns, (n, d). Raises `BadCellError` for the first cell that is not a number."""
    (first, *others) = names
    if not others and (_is_list(table.schema.field(first).type) or _is_written_list(table[first])):
        return _of_lists(table[first], first, field)
    for name in names:
        kind = table.schema.field(name).type
        if not (_is_number(kind) or _is_text(kind) or table[name].null_count == len(table)):
            held = f"column '{shortened(name)}' holds {shortened(kind, 40)}"
            raise InputError(f"{field}: {held}, not numbers or lists of numbers", field=field)
    return _of_columns(table, names, field)


def _no_column(name: str, names: list[str], field: str) -> InputError:
    return InputError(f"{field}: no column '{shortened(name)}' (available: {listed(names, 120)})", field=field)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _first_texts(column: pa.ChunkedArray) -> list[str]:
    """The first cells of a column of text that are not empty."""
    cells = column.slice(0, 50).to_pylist() if _is_text(column.type) else []
    return [cell for cell in cells if cell and cell.strip()]


def _is_written_list(column: pa.ChunkedArray) -> bool:
    """Whether a column of text holds vectors, such as `[0.1, 0.2]`."""
    return cells_of.are_vectors(_first_texts(column))


def _holds_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a column is a dimension: numbers, or mostly numeric texts, so that one bad cell does not hide a dimension."""
    if _is_number(column.type):
        return True
    if not _first_texts(column):
        return False
    import pandas as pd

    values = pd.Series(column.slice(0, 2_000).to_pylist()).dropna()
    return bool(pd.to_numeric(values, errors="coerce").notna().mean() > 0.5)


def with_points(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column in which texts of numbers have decimal points."""
    import pyarrow.compute as pc

    commas = text_files.has_decimal_commas(table) and _is_text(table[name].type)
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
    import pyarrow as pa

    if not column.null_count:
        with contextlib.suppress(pa.ArrowInvalid):
            written = np.asarray(column.cast(pa.float64()).to_numpy())
            if not np.isnan(written).any():
                return written
    values = column.to_pylist()
    numbers = _or_nan(column)
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
    fixed = pa.types.is_fixed_size_list(column.type)
    lengths = np.full(1, column.type.list_size) if fixed else pc.list_value_length(column).to_numpy()
    _require_even(lengths, name, field)
    parts = []
    for chunk in column.chunks:
        values = chunk.flatten()
        wide = pa.float32() if pa.types.is_float32(inner) or pa.types.is_float16(inner) else pa.float64()
        parts.append(numbers_of(values.cast(wide, safe=False)).reshape(len(chunk), int(lengths[0])))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _of_written_lists(column: pa.ChunkedArray, name: str, field: str) -> NDArray[Any]:
    rows = []
    for row, text in enumerate(column.to_pylist()):
        values = None if text is None else cells_of.numbers_in(text)
        if values is None:
            problem = "it is empty" if text is None else cells_of.problem_of(text)
            raise BadCellError(row, name, problem, field)
        rows.append(values)
    _require_even(np.array([len(row) for row in rows]), name, field)
    return np.stack(rows)


def _require_even(lengths: NDArray[Any], name: str, field: str) -> None:
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd):
        row = int(odd[0])
        raise BadCellError(row, name, _unlike(int(lengths[row]), int(lengths[0])), field)


def _unlike(count: int, d: int) -> str:
    return f"{count} number{'' if count == 1 else 's'} where other rows have {d}"


def _first_null(column: pa.ChunkedArray) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy())[0])


class BadCellError(BadRowError):
    """An invalid cell."""

    def __init__(self, row: int, name: str, problem: str, field: str) -> None:
        super().__init__(f"{field}: row {row + 1}, column '{shortened(name)}': {problem}", field=field)
        self._cell = (row, name, problem, field)

    def moved(self, rows: int) -> BadCellError:
        """The same error in a table that starts this many rows earlier."""
        row, *others = self._cell
        return BadCellError(row + rows, *others)
