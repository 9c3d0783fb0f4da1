"""The columns of a table that hold vectors: a column of lists or one column per dimension, beside texts, labels and ids.

A table larger than memory is decoded batch by batch into an unnamed temporary file, which is then memory-mapped: further passes
over the vectors read it in blocks, like a large .npy file.
"""

from __future__ import annotations

import fnmatch
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation
from isoviz.errors import InputError, listed, shortened
from isoviz.home import home, make_private
from isoviz.tables import arrays, catalogue, formats, stores, text_files
from isoviz.vectors import cells as cells_of

if TYPE_CHECKING:
    import pyarrow as pa

NAMES: Final = {
    "id": ("id", "_id", "ids"),
    "text": ("text", "sentence", "texts", "document", "documents", "page_content", "chunk", "payload.text"),
    "label": ("label", "labels"),
    "group": ("group", "groups"),
}
"""Column of a set → names by which it is recognised in a file."""
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


@dataclass(frozen=True)
class Columns:
    """Names of a file's columns; None for a usual name (`NAMES`), if present.

    Attributes:
        points: a column of lists, `dim_*` or names with commas for one column per dimension, or an array of the file; None: the
            only column of lists, else all columns of numbers without another role.
        id, text, label, group: columns with one value per vector.
    """

    points: str | None = None
    id: str | None = None
    text: str | None = None
    label: str | None = None
    group: str | None = None

    def given(self, column: str) -> str | None:
        """The name of a column of a set, if it was given."""
        name: str | None = getattr(self, column)
        return name

    @property
    def as_text(self) -> tuple[str, ...]:
        """Columns in lower case whose cells in a text file stay as they are written: ids and texts."""
        return (*NAMES["id"], *NAMES["text"], *(name.lower() for name in (self.id, self.text) if name))

    def among(self, names: Collection[str]) -> Columns:
        """Without those that are not in a table, because they are in the one beside it."""
        return Columns(self.points, *(one if one in names else None for one in map(self.given, NAMES)))


USUAL: Final = Columns()
"""Columns by their usual names."""


def points_of(name: str, column: str | None, field: str, skip_bad: bool = False) -> tuple[NDArray[Any], list[str]]:
    """The vectors of a table, (n, d), and their columns; of a large one, a read-only map of a temporary file that lives as long as it.

    Args:
        name: the file, or a source such as `hub:owner/name:split`.
        column: see `Columns.points`.
        skip_bad: leave out rows without a readable vector, with a warning.

    Raises:
        InputError: like `isoviz.vectors.read`.
    """
    if stores.is_store(name):
        with stores.opened(name, field) as found:
            rows = Rows([found.column], field, skip_bad)
            return _spooled(rows, found.pieces), rows.names
    if catalogue.remote(name) is None:
        path = input_validation.file(name, field)
        with catalogue.naming_field(field):
            format = catalogue.identified(path, "table", "vectors", "array")
            packed = 4 if path.suffix.lower() == catalogue.GZIP else 1
            if format.batches is not None and packed * path.stat().st_size > STREAM_ABOVE:
                first = formats.file_table(path, _FIRST_ROWS, USUAL.as_text)
                names = _vector_columns(first, column, field) if len(first) else []
                rows = Rows(names, field, skip_bad)
                size = max(1, _BATCH * len(first) // max(1, first.select(names).nbytes))
                return _spooled(rows, formats.batches(path, format, names, size)), names
    table = formats.read(name, field, USUAL.as_text)
    rows = Rows(_vector_columns(table, column, field), field, skip_bad)
    return rows.whole(table), rows.names


def _vector_columns(table: pa.Table, column: str | None, field: str) -> list[str]:
    return dimensions_of(table, column, set(places_of(table.column_names, USUAL, field).values()), field)


def _spooled(rows: Rows, batches: Iterator[pa.Table]) -> NDArray[Any]:
    """Write the vectors of all batches into one file, and map it."""
    kind, n, d = None, 0, 0
    make_private(home())
    with tempfile.TemporaryFile(dir=home()) as spool:  # not in /tmp, which may be in memory
        for points in rows.read(batches):
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
        names: their columns.
        skip_bad: leave such rows out, with a warning; else they are an error, raised by `finish` once all are counted.
    """

    def __init__(self, names: list[str], field: str, skip_bad: bool) -> None:
        self.names = names
        self.kept = np.ones(0, dtype=bool)
        """Which rows have a vector."""
        self.skipped = ""
        """The sentence on rows that were left out, after `finish`."""
        self._field, self._skip = field, skip_bad
        self._first: InputError | None = None

    def whole(self, table: pa.Table) -> NDArray[Any]:
        """The vectors of a whole table, (n, d)."""
        points = next(self.read([table]), np.empty((0, 0), dtype=np.float32))
        self.finish()
        return points

    def read(self, tables: Iterable[pa.Table]) -> Iterator[NDArray[Any]]:
        """The vectors of each piece, (rows, d), finite."""
        d: int | None = None
        for table in tables:
            if not table.num_rows:
                continue
            points = _decoded(table, self.names, d, self._field)
            good = arrays.finite_rows(points)
            if not good.all():
                self._first = self._first or self._error(table, points, int(good.argmin()))
                points = points[good]
            self.kept = np.concatenate([self.kept, good])
            if len(points):
                d = points.shape[1]
                yield points

    def _error(self, table: pa.Table, points: NDArray[Any], row: int) -> InputError:
        lists = holds_lists(table, self.names)
        for index, name in enumerate(self.names):
            value = with_points(table, name)[row].as_py()
            vector = cells_of.numbers_in(value) if lists and isinstance(value, str) else value
            problem = None
            if value is None:
                problem = "it is empty"
            elif vector is None:
                problem = cells_of.problem_of(value)
            elif lists and len(vector) != points.shape[1]:
                problem = (
                    f"{len(vector)} number{'' if len(vector) == 1 else 's'} where other rows have {points.shape[1]}"
                )
            elif isinstance(vector, str) and np.isnan(points[row, index]):
                problem = f"'{shortened(value, 30)}' is not a number"
            if problem is not None:
                return bad_cell(len(self.kept) + row, name, problem, self._field)
        return arrays.not_finite(points[row], self._field, len(self.kept) + row)

    def finish(self) -> None:
        """Say in a sentence how many rows were left out. Raises `InputError` for them unless they may be skipped."""
        if self._first is None:
            return
        total, bad = len(self.kept), int((~self.kept).sum())
        have = "row has" if total == 1 else "rows has" if bad == 1 else "rows have"
        place = str(self._first).removeprefix(f"{self._field}: ")
        words = f"{bad:,} of {total:,} {have} no readable vector, the first is {place}"
        if not self._skip or bad == total:
            advice = "To leave them out: --skip-bad-rows, on pages Skip bad rows." if bad < total else None
            raise InputError(f"{self._field}: {words}", field=self._field, advice=advice)
        self.skipped = f"{words}; left out"
        warnings.warn(f"{self._field}: {self.skipped}", stacklevel=2)


# --------------------------------------------------------------------------------------------------- which columns


def places_of(names: list[str], given: Columns, field: str) -> dict[str, str]:
    """Column of a set → column of the table. Requested columns must exist."""
    lower = {name.lower(): name for name in reversed(names)}
    places = {}
    for column, usual in NAMES.items():
        wanted = given.given(column)
        if wanted is not None:
            if wanted not in names:
                raise InputError.at(
                    field, f"the table has no column '{shortened(wanted)}' for {column} (it has: {listed(names, 120)})"
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
    if requested is not None:
        wanted = [requested] if requested in names else [part.strip() for part in requested.split(",") if part.strip()]
        if len(wanted) == 1 and requested not in names:
            wanted = [name for name in names if fnmatch.fnmatchcase(name, requested)] or wanted
        missing = next((name for name in wanted if name not in names), None)
        if missing is not None or not wanted:
            shown = f"no column '{shortened(missing or requested)}' (available: {listed(names, 120)})"
            raise InputError.at(field, shown)
        return wanted
    lists, numbers = list_columns(table, taken), number_columns(table, taken)
    if len(lists) > 1:
        raise InputError.at(field, f"{len(lists)} columns hold lists ({listed(lists, 100)}); name the one to read")
    selected = lists or numbers
    unread = [name for name in names if _VECTORS.fullmatch(name) and name not in {*selected, *taken}]
    if unread and not lists:
        held = _first_texts(table[unread[0]]) or [table.schema.field(unread[0]).type]
        raise InputError.at(
            field,
            f"column '{shortened(unread[0])}' holds no vectors that can be read, but '{shortened(held[0], 40)}'; "
            f"name the columns of the vectors (columns: {listed(names, 80)})",
        )
    if not selected:
        raise InputError.at(
            field, f"no column of lists and no column of numbers (columns: {listed(names, 120) or 'none'})"
        )
    if odd := odd_columns(table, numbers if not lists else []):
        warnings.warn(
            f"{field}: columns that look like ids, labels or times are read as dimensions: {listed(odd)}; to leave them out, "
            "name the columns of the vectors",
            stacklevel=2,
        )
    return selected


def list_columns(table: pa.Table, taken: Collection[str]) -> list[str]:
    """The columns with a list per row, except `taken`."""
    return [name for name in table.column_names if name not in taken and holds_lists(table, [name])]


def number_columns(table: pa.Table, taken: Collection[str]) -> list[str]:
    """The columns of numbers, except `taken` and row numbers."""
    free = [name for name in table.column_names if name not in taken and not _INDEX.fullmatch(name)]
    return [name for name in free if _holds_numbers(with_points(table, name))]


def odd_columns(table: pa.Table, names: list[str]) -> list[str]:
    """Columns unlike the other dimensions: whole numbers among fractions, numbers that only rise or fall, or ten thousand times as
    large as most."""
    if len(names) < 2 or len(table) < _FEWEST_ROWS:
        return []
    points = np.stack([_numbers(with_points(table, name).slice(0, 2_000)) for name in names], 1)
    varies = points.max(axis=0) > points.min(axis=0)  # a dead dimension is none of these
    whole = (points % 1 == 0).all(axis=0) & varies
    steps = np.diff(points, axis=0)
    monotone = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    sizes = np.median(np.abs(points), axis=0)
    large = sizes > _LARGE * max(np.median(sizes), np.finfo(float).tiny)
    odd = (whole & (whole.mean() <= 0.5)) | monotone | large
    return [name for name, is_odd in zip(names, odd, strict=True) if is_odd]


def holds_lists(table: pa.Table, names: list[str]) -> bool:
    """Whether the columns are one with a list per row, as such or written as text, such as `[0.1, 0.2]`."""
    column = table[names[0]]
    return len(names) == 1 and (_is_list(column.type) or cells_of.are_vectors(_first_texts(column)))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds texts."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _first_texts(column: pa.ChunkedArray) -> list[str]:
    cells = column.slice(0, 50).to_pylist() if is_text(column.type) else []
    return [cell for cell in cells if cell and cell.strip()]


def _holds_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a column is a dimension: numbers, or mostly numeric texts, so that one bad cell does not hide a dimension."""
    if _is_number(column.type):
        return True
    values = column.slice(0, 2_000).drop_null() if _first_texts(column) else []
    return len(values) > 0 and bool((~np.isnan(_numbers(values))).mean() > 0.5)


def with_points(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column in which texts of numbers have decimal points."""
    import pyarrow.compute as pc

    commas = text_files.has_decimal_commas(table) and is_text(table[name].type)
    return pc.replace_substring(table[name], ",", ".") if commas else table[name]


# ------------------------------------------------------------------------------------------------------- their numbers


def bad_cell(row: int, name: str, problem: str, field: str) -> InputError:
    """The error of a cell; rows are counted from 0."""
    return InputError.at(field, f"row {row + 1}, column '{shortened(name)}': {problem}")


def _decoded(table: pa.Table, names: list[str], d: int | None, field: str) -> NDArray[Any]:
    """The vectors in these columns, (n, d); NaN where a cell holds none.

    Args:
        d: numbers in a list; None: of most lists.
    """
    import pyarrow as pa

    if holds_lists(table, names):
        return _of_lists(table[names[0]], names[0], d, field)
    for name in names:
        kind = table.schema.field(name).type
        if not (_is_number(kind) or is_text(kind) or table[name].null_count == len(table)):
            held = f"column '{shortened(name)}' holds {shortened(kind, 40)}"
            raise InputError.at(field, f"{held}, not numbers or lists of numbers")
    narrow = all(pa.types.is_float32(table.schema.field(name).type) for name in names)
    points = np.empty((table.num_rows, len(names)), dtype=np.float32 if narrow else np.float64)
    for index, name in enumerate(names):
        points[:, index] = _numbers(with_points(table, name))
    return points


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The numbers of a column, NaN where a cell is empty or no number; integers above 2^53 are rounded."""
    import pandas as pd
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pd.to_numeric(pd.Series(column.to_pylist(), dtype="object"), errors="coerce").to_numpy(dtype=np.float64)


def _of_lists(column: pa.ChunkedArray, name: str, d: int | None, field: str) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    dtype: type[np.floating[Any]] = np.float64
    if _is_list(column.type):
        inner = column.type.value_type
        if not _is_number(inner):
            held = (
                "lists of lists; expected one vector per row"
                if _is_list(inner)
                else f"lists of {inner}, not of numbers"
            )
            raise InputError.at(field, f"column '{shortened(name)}' holds {held}")
        dtype = np.float32 if pa.types.is_float32(inner) or pa.types.is_float16(inner) else np.float64
        fixed = pa.types.is_fixed_size_list(column.type)
        lengths = np.full(1, column.type.list_size) if fixed else pc.list_value_length(column).to_numpy()
        if not column.null_count and (lengths == (d or lengths[0])).all():
            wide = pa.from_numpy_dtype(dtype)
            parts = [chunk.flatten().cast(wide, safe=False).to_numpy(zero_copy_only=False) for chunk in column.chunks]
            flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
            return flat.reshape(len(column), int(lengths[0]))
    cells = [cells_of.numbers_in(one) if isinstance(one, str) else one for one in column.to_pylist()]
    counts = Counter(len(one) for one in cells if one is not None and len(one)).most_common(1)
    d = d or (counts[0][0] if counts else 1)
    points = np.full((len(cells), d), np.nan, dtype=dtype)
    for row, one in enumerate(cells):
        if one is not None and len(one) == d:
            points[row] = one
    return points
