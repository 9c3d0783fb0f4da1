"""Any file of vectors or texts as a checked set. All of a user's vectors and texts come through here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary
from isoviz.errors import InputError, listed, shortened
from isoviz.tables import arrays, formats, stores
from isoviz.vectors import columns as table_columns
from isoviz.vectors import pairs
from isoviz.vectors.embedded import reopened
from isoviz.vectors.sets import TextSet, VectorSet

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Content = TypeVar("Content", bound=VectorSet | TextSet)

PAGE: Final = ".html"
"""Of a page without a server with vectors inside."""
SUFFIXES: Final = (*arrays.SUFFIXES, *formats.SUFFIXES, PAGE)
TEXT_SUFFIXES: Final = (".txt", *formats.SUFFIXES)
FEWEST: Final = 2
MOST_TEXTS: Final = 100_000
_MOST_COUNTS: Final = 3
"""A table of texts may have up to this many columns of numbers, such as a rating or a year, without being read as vectors."""


@dataclass(frozen=True)
class Columns:
    """Names of a file's columns; None for a usual name (`isoviz.vectors.columns.NAMES`), if present.

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


def read(
    path: str | Path,
    columns: Columns = Columns(),
    *,
    beside: str | Path | None = None,
    relations: str | Path | None = None,
    name: str | None = None,
    field: str = "vectors",
) -> VectorSet:
    """Vectors from a file of any format, `hub:owner/name:split` or the URL of a store (`isoviz.tables.stores`).

    Args:
        path: .npy, .npz, .safetensors, .parquet, .arrow, .feather, .csv, .tsv or .jsonl, or a page with vectors inside (.html).
        columns: columns of the file or of `beside`.
        beside: a table with texts, labels, groups or ids, one row per vector in the same order.
        relations: a table of pairs with a score, or of queries, documents and relevance.
        name: title on pages; None for the file's name.
        field: form field or command-line option of the file, for errors.

    Raises:
        InputError: the file cannot be used; names the row (from 1) and column, if any.
    """
    path_text = str(path)
    if formats.remote(path_text) is not None:
        table = formats.read(path_text, field, _as_text(columns))
        return _vectors_of(table, path_text, columns, beside, relations, name, field)
    if Path(path_text).suffix.lower() == PAGE:
        points, row_data, address = reopened(path_text, field)
        title, facts = name or Path(path_text).name, {"saved from": address} if address else {}
        return _with_pairs(from_points(points, row_data, name=title, facts=facts, field=field), relations)
    if Path(path_text).suffix.lower() in arrays.SUFFIXES:
        return _vectors_of(None, path_text, columns, beside, relations, name, field)
    _require_known(path_text, SUFFIXES, field)
    table = formats.read(path_text, field, _as_text(columns))
    return _vectors_of(table, path_text, columns, beside, relations, name, field)


def read_either(
    path: str,
    columns: Columns = Columns(),
    *,
    beside: str | None = None,
    relations: str | None = None,
    name: str | None = None,
    field: str = "vectors",
) -> VectorSet | TextSet:
    """Vectors if the file has some, else texts. A table of texts with up to `_MOST_COUNTS` columns of numbers counts as texts."""
    suffix = "" if formats.remote(path) else Path(path).suffix.lower()
    if suffix == ".txt":
        return read_texts(path, columns, relations=relations, name=name)
    if columns.points is not None or not (formats.remote(path) or suffix in formats.SUFFIXES):
        return read(path, columns, beside=beside, relations=relations, name=name, field=field)
    table = formats.read(path, field, _as_text(columns))
    places = table_columns.places_of(table.column_names, _requested(columns), field)
    assigned = set(places.values())
    numbers = table_columns.number_columns(table, assigned)
    texts = "text" in places or len(_text_columns(table, {*assigned, *numbers})) == 1
    if not table_columns.list_columns(table, assigned) and (not numbers or (texts and len(numbers) <= _MOST_COUNTS)):
        return _texts_of(table, path, columns, relations, name, "texts")
    return _vectors_of(table, path, columns, beside, relations, name, field)


def _vectors_of(
    table: pa.Table | None,
    path_text: str,
    columns: Columns,
    beside: str | Path | None,
    relations: str | Path | None,
    name: str | None,
    field: str,
) -> VectorSet:
    """Vectors of a table or an array file."""
    facts: dict[str, Any] = {}
    if table is None:
        points = arrays.read(path_text, columns.points, field)
        facts = {"array": columns.points}
    else:
        places = table_columns.places_of(table.column_names, _requested(columns), field)
        dimensions = table_columns.dimensions_of(table, columns.points, set(places.values()), field)
        odd = [] if columns.points or len(dimensions) == 1 else table_columns.odd_columns(table, dimensions)
        points, facts = table_columns.values_of(table, dimensions, field), {"dimensions": dimensions, "odd": odd}
    if beside is not None:
        table = formats.read(beside, field, _as_text(columns))
    row_data = None if table is None else _columns_of(table, columns, field)
    if row_data is not None and len(row_data) != len(points):
        raise InputError(
            f"{field}: {len(points):,} vectors, but {len(row_data):,} rows of texts, labels or ids",
            field=field,
        )
    title = name or _title(table, path_text)
    return _with_pairs(from_points(points, row_data, name=title, facts=facts, field=field), relations)


def _with_pairs(content: Content, relations: str | Path | None) -> Content:
    """The set with the pairs of a file, if there is one."""
    if relations is None:
        return content
    rated, relation = pairs.read(relations, content.columns)
    return replace(content, pairs=rated, relation=relation)


def array(name: str, column: str | None = None, field: str = "vectors") -> NDArray[Any]:
    """The points of `named_array`."""
    return named_array(name, column, field)[0]


def named_array(name: str, column: str | None, field: str) -> tuple[NDArray[Any], list[str]]:
    """The points of a file of any format, (n, d), unchecked and possibly memory-mapped; and the columns of a table with them.

    Args:
        name: the file, `hub:owner/name:split` or the URL of a store.
        column: see `Columns.points`.

    Raises:
        InputError: like `read`, except for non-finite values and for few points or dimensions.
    """
    if Path(name).suffix.lower() not in formats.SUFFIXES and formats.remote(name) is None:
        return arrays.read(name, column, field), []
    points, dimensions = table_columns.points_of(name, column, field)
    if 0 in points.shape:
        raise InputError(f"{field}: '{name}' contains no points: its shape is {points.shape}", field=field)
    return points, dimensions


def from_points(
    points: NDArray[Any],
    columns: pd.DataFrame | None = None,
    *,
    name: str = "",
    facts: dict[str, Any] | None = None,
    field: str = "vectors",
) -> VectorSet:
    """A checked set from an array. Raises like `read`."""
    import pandas as pd

    if points.ndim != 2:
        raise InputError(f"{field}: the shape is {points.shape}; expected (vectors, dimensions)", field=field)
    if points.dtype.kind not in "fiu":
        raise InputError(f"{field}: the array holds {points.dtype}, not numbers", field=field)
    n, d = points.shape
    if n < FEWEST:
        raise InputError(f"{field}: {n} vector{'' if n == 1 else 's'}; at least {FEWEST} are needed", field=field)
    if d < 2:
        raise InputError(f"{field}: the vectors have {d} dimension; at least 2 are needed", field=field)
    if points.dtype not in (np.float32, np.float64):
        arrays.check_finite(points, field)  # reports an overflow in the file's own type
        points = points.astype(np.float32 if points.dtype.itemsize <= 2 else np.float64)
    arrays.check_finite(points, field)
    row_data = pd.DataFrame(index=range(n)) if columns is None else columns
    return VectorSet(points, row_data, name=name, facts=facts or {})


def read_texts(
    path: str | Path,
    columns: Columns = Columns(),
    *,
    relations: str | Path | None = None,
    name: str | None = None,
    field: str = "texts",
) -> TextSet:
    """Texts from a .txt file, one per line, or from a table's column. Raises like `read`."""
    title = name or formats.title(str(path))
    if Path(str(path)).suffix.lower() == ".txt" and formats.remote(str(path)) is None:
        with boundary.parsing(f"{title} cannot be read as text", field):
            file_path = boundary.file(path, field)
            try:
                content = file_path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{field}: {title} is not UTF-8 (byte {error.start:,}); save it as UTF-8", field=field
                ) from None
        return _with_pairs(from_texts(content.splitlines(), name=title, field=field), relations)
    _require_known(str(path), TEXT_SUFFIXES, field)
    return _texts_of(formats.read(path, field, _as_text(columns)), str(path), columns, relations, name, field)


def _texts_of(
    table: pa.Table, path: str, columns: Columns, relations: str | Path | None, name: str | None, field: str
) -> TextSet:
    row_data = _columns_of(table, columns, field)
    if "text" not in row_data:
        places = table_columns.places_of(table.column_names, _requested(columns), field)
        texts = _text_columns(table, places.values())
        if len(texts) != 1:
            raise InputError(
                f"{field}: name the column of the texts (columns: {listed(table.column_names, 120)})", field=field
            )
        row_data = _columns_of(table, replace(columns, text=texts[0]), field)
    return _with_pairs(_checked_texts(row_data, name or _title(table, path), field), relations)


def from_texts(lines: Sequence[str], *, name: str = "pasted texts", field: str = "texts") -> TextSet:
    """Texts from lines, without empty ones. Raises like `read`."""
    import pandas as pd

    texts = [line.strip() for line in lines if line.strip()]
    return _checked_texts(pd.DataFrame({"text": pd.Series(texts, dtype="str")}), name, field)


def _checked_texts(row_data: pd.DataFrame, name: str, field: str) -> TextSet:
    if len(row_data) < FEWEST:
        raise InputError(
            f"{field}: {len(row_data)} text{'' if len(row_data) == 1 else 's'}; at least {FEWEST} are needed",
            field=field,
        )
    if len(row_data) > MOST_TEXTS:
        raise InputError(f"{field}: {len(row_data):,} texts; at most {MOST_TEXTS:,} are encoded", field=field)
    for row, text in enumerate(row_data["text"], start=1):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{field}: row {row}: an incomplete character (a lone surrogate)", field=field) from None
    return TextSet(row_data, name)


def annotated(
    content: TextSet | VectorSet, labels: str | Path | None = None, relations: str | Path | None = None
) -> TextSet | VectorSet:
    """A set with the labels or the pairs of further files; pairs replace those it has.

    Without an id column, the rows are numbered from 1.

    Args:
        labels: a table with a column `label`, and `id`s or one row per vector in the same order.
        relations: see `read`.

    Raises:
        InputError: the file does not fit the set (field `labels` or `pairs`).
    """
    import pandas as pd

    row_data = content.columns.copy()
    if "id" not in row_data:
        row_data.insert(0, "id", pd.Series(range(1, content.n + 1), dtype=object).astype(str))
    if labels is not None:
        table = _columns_of(formats.read(labels, "labels", _as_text(Columns())), Columns(), "labels")
        if "label" not in table:
            raise InputError("labels: the file has no column 'label'", field="labels")
        if "id" in table:
            matched = row_data["id"].map(table.set_index("id")["label"])
            if matched.isna().all():
                raise InputError(
                    f"labels: no row of the set has one of these ids, such as '{shortened(table['id'].iloc[0])}'",
                    field="labels",
                    advice="Without a column 'id', rows are matched by their order.",
                )
            row_data["label"] = matched
        elif len(table) != content.n:
            raise InputError(
                f"labels: {len(table):,} labels, but {content.n:,} rows; add a column 'id' to match them",
                field="labels",
            )
        else:
            row_data["label"] = table["label"]
    return _with_pairs(replace(content, columns=row_data), relations)


# ------------------------------------------------------------------------------------------------------------- helpers


def _title(table: pa.Table | None, path: str) -> str:
    """What a source is called; of a store it says which rows were drawn."""
    metadata = None if table is None else table.schema.metadata
    return (metadata or {}).get(stores.TITLE, b"").decode() or formats.title(path)


def _require_known(path: str, suffixes: Sequence[str], field: str) -> None:
    suffix = Path(path).suffix.lower()
    if formats.remote(path) is None and suffix not in suffixes:
        boundary.file(path, field)
        shown = f"'{shortened(Path(path).name)}' ends in '{suffix or 'nothing'}'"
        raise InputError(f"{field}: {shown} (allowed: {', '.join(suffixes)})", field=field)


def _requested(columns: Columns) -> dict[str, str | None]:
    return {name: getattr(columns, name) for name in table_columns.NAMES}


def _as_text(columns: Columns) -> tuple[str, ...]:
    """Names of the columns of ids and texts, in lower case."""
    return (*table_columns.AS_TEXT, *(name.lower() for name in (columns.id, columns.text) if name))


def _text_columns(table: pa.Table, taken: Collection[str]) -> list[str]:
    """The columns of texts except `taken`."""
    return [name for name in table.column_names if name not in taken and _is_text(table.schema.field(name).type)]


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _columns_of(table: pa.Table, columns: Columns, field: str) -> pd.DataFrame:
    """`id`, `text`, `label` and `group` of a table, if present, each of one type. Only ids must be complete."""
    import pandas as pd

    places = table_columns.places_of(table.column_names, _requested(columns), field)
    roles = {}
    for column, place in places.items():
        values = table[place].to_pandas()
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(object).infer_objects()
        if any(isinstance(value, (list, dict, np.ndarray)) for value in values.head(100)):
            raise InputError(
                f"{field}: column '{shortened(place)}' holds lists; {column} must have one value per row", field=field
            )
        if column == "text":
            values = values.fillna("").astype("str")
        elif column == "id":
            pairs.refuse_first(values.isna(), values, place, "it is empty", field)
            values = pairs.as_ids(values)
            repeated = values.duplicated()
            if repeated.any():
                first = int(np.flatnonzero(values == values[repeated].iloc[0])[0])
                pairs.refuse_first(repeated, values, place, f"the id '{{}}' is already in row {first + 1}", field)
        elif values.dtype.kind == "f" and values.isna().any() and (values.dropna() % 1 == 0).all():
            values = values.astype("Int64")  # integer codes with a missing value
        roles[column] = values.reset_index(drop=True)
    return pd.DataFrame(roles) if roles else pd.DataFrame(index=range(table.num_rows))
