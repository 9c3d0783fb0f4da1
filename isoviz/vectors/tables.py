"""Tables of vectors: a column of lists or one column per dimension, with texts, labels and ids."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary, hub, limits
from isoviz.errors import DataError, InputError, listed, shortened
from isoviz.tasks import files

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PARQUET: Final = (".parquet",)
ARROW: Final = (".arrow", ".feather", ".ipc")
TEXT: Final = (".csv", ".tsv", ".jsonl")
SUFFIXES: Final = (*PARQUET, *ARROW, *TEXT)
HUB: Final = "hub:"
"""Prefix of a data set's name: `hub:owner/name`, `hub:owner/name:split` or `hub:owner/name/configuration:split`."""
NAMES: Final = {
    "id": ("id", "_id", "ids"),
    "text": ("text", "sentence", "texts"),
    "label": ("label", "labels"),
    "group": ("group", "groups"),
}
"""Column of a set → names by which it is recognised in a file."""
AS_TEXT: Final = (*NAMES["id"], *NAMES["text"])
DECIMAL_COMMAS: Final = {"decimal": ","}
"""Metadata of a table whose texts write numbers with decimal commas."""
_INDEX: Final = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names of columns in which pandas writes row numbers."""
_FEWEST_ROWS: Final = 8
"""Rows from which a column of rising numbers is no accident."""
_LARGE: Final = 1e4
"""Ratio to the other columns' median from which a column has another scale; rogue dimensions of models stay below it."""
_REPOSITORY: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)


def read(name: str | Path, field: str, as_text: Collection[str] = AS_TEXT) -> pa.Table:
    """A whole table. Raises `InputError` if the file is not a table.

    Args:
        as_text: columns in lower case, whose cells of a csv or tsv stay as they are written.
    """
    if str(name).startswith(HUB):
        return _of_hub(str(name).removeprefix(HUB), field)
    path = boundary.file(name, field)
    suffix = path.suffix.lower()
    with naming_field(field):
        if suffix in TEXT:
            return of_text(path, as_text=as_text)
        with boundary.parsing(f"{path.name} cannot be read as {suffix[1:]}", field):
            table = _of_parquet(path) if suffix in PARQUET else _of_arrow(path)
        require_distinct(table.column_names, path)
        return table


def require_distinct(names: list[str], path: Path) -> None:
    """Raise `DataError` if two columns have the same name."""
    doubled = next((name for name, count in Counter(names).items() if count > 1), None)
    if doubled is not None:
        raise DataError(f"data: {path.name} has two columns called '{shortened(doubled)}'", field="data")


@contextmanager
def naming_field(field: str) -> Iterator[None]:
    """Make the shared readers' errors refer to this field."""
    try:
        yield
    except DataError as error:
        message = str(error).removeprefix("data: ")
        raise InputError(
            message if message.startswith(f"{field}: ") else f"{field}: {message}", field=field, advice=error.advice
        ) from None


def of_text(path: Path, rows: int | None = None, as_text: Collection[str] = AS_TEXT) -> pa.Table:
    """A text file, or its first rows."""
    import pyarrow as pa

    frame = files.tabular(path, rows, as_text)
    frame.columns = [str(name) for name in frame.columns]
    require_distinct(list(frame.columns), path)
    limits.check(path.name, columns=frame.shape[1], rows=len(frame), cells=frame.size)
    columns = {}
    for name in frame:
        try:
            columns[name] = pa.array(frame[name], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # values of several types in JSON lines
            first, kind = _first_of_other_type(frame[name].tolist())
            raise DataError(
                f"data: row {first}, column '{shortened(name)}': a {kind} where earlier rows have another type",
                field="data",
            ) from None
    commas = path.suffix.lower() == ".csv" and files.csv_layout(path).separator == ";"
    return pa.table(columns, metadata=DECIMAL_COMMAS if commas else None)


def _first_of_other_type(values: list[Any]) -> tuple[int, str]:
    kinds = [(row, type(value).__name__) for row, value in enumerate(values, start=1) if value is not None]
    return next(((row, kind) for row, kind in kinds if kind != kinds[0][1]), kinds[0])


def _of_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet

    file = pa.parquet.ParquetFile(path)
    names = file.schema_arrow.names
    rows = file.metadata.num_rows
    limits.check(path.name, columns=len(names), rows=rows, cells=rows * len(names))
    tables = files.groups(file, list(dict.fromkeys(names)), np.arange(rows), path.name)
    return pa.concat_tables(tables) if tables else file.schema_arrow.empty_table()


def _of_arrow(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            reader = pa.ipc.open_file(source)
            batches: Iterator[pa.RecordBatch] = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            source.seek(0)
            reader = pa.ipc.open_stream(source)
            batches = iter(reader)
        batches_read, size = [], 0
        for batch in batches:  # compressed batches take more memory than the file
            size += batch.nbytes
            limits.check(path.name, expanded=size)
            batches_read.append(batch)
        return pa.Table.from_batches(batches_read, schema=reader.schema)


def _of_hub(name: str, field: str) -> pa.Table:
    """A split of a hub data set: downloaded, or from this machine's cache if the hub is unreachable."""
    import datasets

    title, _, split = name.partition(":")
    owner, _, path_in_repository = title.partition("/")
    dataset, _, configuration = path_in_repository.partition("/")
    repository = f"{owner}/{dataset}"
    split = split or "train"
    if not _REPOSITORY.fullmatch(repository):
        raise InputError(
            f"{field}: '{shortened(title)}' is not a data set of the hub; expected {HUB}owner/name:split", field=field
        )
    if Path(repository).exists():  # the library would read the folder, bypassing the file access rules
        raise InputError(
            f"{field}: '{repository}' is also a folder on this server; enter the path of a file in it", field=field
        )
    from isoviz.tasks.hub import cached, data_error

    reason = hub.offline()
    try:
        open_builder = cached if reason else datasets.load_dataset_builder
        builder = open_builder(repository, configuration or None)
        limits.check(title, field=field, expanded=builder.info.download_size or 0)
        builder.download_and_prepare()
        if split not in (builder.info.splits or {}):
            has = ", ".join(map(str, builder.info.splits or ()))
            raise InputError(f"{field}: '{title}' has no split '{split}' (it has: {has})", field=field)
        split_data = builder.as_dataset(split=split)
    except InputError:
        raise
    except Exception as error:
        problem = data_error(f"{field}: '{shortened(title)}'", error, reason, "use a file instead")
        raise InputError(str(problem), field=field) from None
    limits.check(
        title, field=field, rows=len(split_data), columns=len(split_data.column_names), expanded=split_data.data.nbytes
    )
    return split_data.with_format("arrow")[:]


# ------------------------------------------------------------------------------------------------------------- columns


def places_of(names: list[str], given: Mapping[str, str | None], field: str, file: str = "the table") -> dict[str, str]:
    """Column of a set → column of the table. Requested columns must exist."""
    lower = {name.lower(): name for name in reversed(names)}
    places = {}
    for column, usual in NAMES.items():
        wanted = given.get(column)
        if wanted is not None:
            if wanted not in names:
                raise InputError(
                    f"{field}: {file} has no column '{shortened(wanted)}' for {column} (it has: {listed(names, 120)})",
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

    return _mostly_numbers(pd.Series(column.slice(0, 2_000).to_pylist()))


def _mostly_numbers(values: pd.Series) -> bool:
    import pandas as pd

    return bool(pd.to_numeric(values[:2_000].dropna(), errors="coerce").notna().mean() > 0.5)


def with_points(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column in which texts of numbers have decimal points."""
    import pyarrow.compute as pc

    commas = b"decimal" in (table.schema.metadata or {}) and _first_text(table[name]) is not None
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
