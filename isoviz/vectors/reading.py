"""Any file of vectors or texts as a checked set. All of a user's vectors and texts come through here."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation
from isoviz.errors import InputError, listed, shortened
from isoviz.tables import arrays, catalogue, formats, stores
from isoviz.tables.kinds.page import SAVED_FROM
from isoviz.tables.protocol import Holds
from isoviz.vectors import columns as table_columns
from isoviz.vectors import pairs, searches
from isoviz.vectors.columns import USUAL
from isoviz.vectors.columns import Columns as Columns
from isoviz.vectors.sets import TextSet, VectorSet

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Content = TypeVar("Content", bound=VectorSet | TextSet)

VECTORS: Final[tuple[Holds, ...]] = ("array", "table", "vectors")
"""What vectors can be read from."""
TEXTS: Final[tuple[Holds, ...]] = ("texts", "table", "vectors")
"""What texts can be read from."""
FEWEST: Final = 2
MOST_TEXTS: Final = 100_000
_MOST_COUNTS: Final = 3
"""A table of texts may have up to this many columns of numbers, such as a rating or a year, without being read as vectors."""


def read(
    path: str | Path,
    columns: Columns = USUAL,
    *,
    beside: str | Path | None = None,
    relations: str | Path | pairs.Relevance | None = None,
    questions: str | Path | None = None,
    asked: Columns | None = None,
    name: str | None = None,
    field: str = "vectors",
    beside_field: str = "labels",
    skip_bad: bool = False,
) -> VectorSet:
    """Vectors from a file of any format, `hub:owner/name:split` or the URL of a store (`isoviz.tables.stores`).

    Args:
        path: a file of any format in `isoviz.tables.catalogue`, or a page with vectors inside (.html).
        columns: columns of the file or of `beside`.
        beside: a table with texts, labels, groups or ids: one row per vector in the same order, or matched by ids that both have.
        relations: a table of pairs with a score, or of queries, documents and relevance.
        questions: the vectors of the questions of a search, if they are in a file of their own.
        asked: columns of `questions`; what it leaves open is read as in `columns`.
        name: title on pages; None for the file's name.
        field, beside_field: form fields or command-line options of the file and of `beside`, for errors.
        skip_bad: leave out rows without a readable vector; the fact `skipped` says how many.

    Raises:
        InputError: the file cannot be used; names the row (from 1) and column, if any.
    """
    if questions is not None:
        own: dict[str, Any] = {"beside": beside, "beside_field": beside_field, "skip_bad": skip_bad}
        documents = read(path, columns, name=name, field=field, **own)
        of_questions = _asked(questions, asked, columns)
        return searches.joined(documents, read(questions, of_questions, field="queries", skip_bad=skip_bad), relations)
    name_of_file, table = str(path), None
    if holds(name_of_file, field, VECTORS) != "array":
        table = _table(name_of_file, field, columns, VECTORS)
    vectors = _vectors_of(table, name_of_file, columns, beside, field, skip_bad, beside_field)
    return _finished(vectors, table, name_of_file, name, relations)


def read_texts(
    path: str | Path,
    columns: Columns = USUAL,
    *,
    relations: str | Path | pairs.Relevance | None = None,
    questions: str | Path | None = None,
    asked: Columns | None = None,
    name: str | None = None,
    field: str = "texts",
) -> TextSet:
    """Texts from a .txt file, one per line, from a table's column, or of a search from a folder as BEIR has it. Raises like `read`."""
    if (folder := searches.files_in(path)) is not None and questions is None and relations is None:
        return _of_folder(*folder, name or Path(path).name)
    if questions is not None:
        documents = read_texts(path, columns, name=name, field=field)
        of_questions = _asked(questions, asked, columns)
        return searches.joined(documents, read_texts(questions, of_questions, field="queries"), relations)
    table = _table(path, field, columns, TEXTS)
    return _finished(_texts_of(table, columns, field), table, str(path), name, relations)


def column_names(path: str | Path) -> list[str]:
    """The columns of a table, from its first rows; empty for what is no table, or cannot be read."""
    try:
        if catalogue.remote(str(path)) is None and holds(str(path), "file") in formats.TABLES:
            names: list[str] = formats.file_table(Path(path), 2).flatten().column_names
            return names
    except InputError:
        pass
    return []


def _asked(questions: str | Path, own: Columns | None, columns: Columns) -> Columns:
    """The columns of a file of questions: its own, else those of the documents that it has."""
    names, own = column_names(questions), own or USUAL
    of_documents = columns.among(names) if names else columns
    every = {name: own.given(name) or of_documents.given(name) for name in table_columns.NAMES}
    return Columns(own.points or columns.points, **every)


def _of_folder(corpus: str, questions: str, relations: str, name: str) -> TextSet:
    """A search whose documents are titles and texts, as BEIR's own reader has them."""
    documents, table = read_texts(corpus, name=name, field="documents"), _table(corpus, "documents", USUAL)
    if "title" in table.column_names:
        titles = table["title"].to_pandas().fillna("").astype("str")
        documents = replace(
            documents, columns=documents.columns.assign(text=(titles + " " + documents.columns["text"]).str.strip())
        )
    return searches.joined(replace(documents, notes=()), read_texts(questions, field="queries"), relations)


def read_either(
    path: str,
    columns: Columns = USUAL,
    *,
    beside: str | None = None,
    relations: str | pairs.Relevance | None = None,
    questions: str | None = None,
    asked: Columns | None = None,
    name: str | None = None,
    field: str = "vectors",
    skip_bad: bool = False,
) -> VectorSet | TextSet:
    """Vectors if the file has some, else texts. A table of texts with up to `_MOST_COUNTS` columns of numbers counts as texts."""
    if questions is not None:
        documents = read_either(path, columns, beside=beside, name=name, field=field, skip_bad=skip_bad)
        kind: Any = read if isinstance(documents, VectorSet) else read_texts
        return searches.joined(
            documents, kind(questions, _asked(questions, asked, columns), field="queries"), relations
        )
    if searches.files_in(path) is not None:
        return read_texts(path, columns, relations=relations, name=name)
    kind = holds(path, field)
    if kind == "texts":
        return read_texts(path, columns, relations=relations, name=name)
    if columns.points is not None or kind != "table":
        return read(path, columns, beside=beside, relations=relations, name=name, field=field, skip_bad=skip_bad)
    table = _table(path, field, columns)
    places = table_columns.places_of(table.column_names, columns, field)
    assigned = set(places.values())
    numbers = table_columns.number_columns(table, assigned)
    texts = "text" in places or len(_text_columns(table, {*assigned, *numbers})) == 1
    if not table_columns.list_columns(table, assigned) and (not numbers or (texts and len(numbers) <= _MOST_COUNTS)):
        return _finished(_texts_of(table, columns, "texts"), table, path, name, relations)
    return _finished(_vectors_of(table, path, columns, beside, field, skip_bad), table, path, name, relations)


def _table(path: str | Path, field: str, columns: Columns, wanted: Sequence[Holds] = formats.TABLES) -> pa.Table:
    """A table, in which the parts of objects are columns: `payload.text`."""
    import pyarrow as pa

    table = formats.read(path, field, columns.as_text, wanted)
    return table.flatten() if any(pa.types.is_struct(one.type) for one in table.schema) else table


def holds(path: str, field: str, wanted: Sequence[Holds] = ()) -> Holds:
    """What a file or another source holds. Raises `InputError` for a file that holds none of what is wanted."""
    if catalogue.remote(path) is not None:
        return "table"
    with catalogue.naming_field(field):
        return catalogue.identified(input_validation.file(path, field), *wanted).holds


def _vectors_of(
    table: pa.Table | None,
    path: str,
    columns: Columns,
    beside: str | Path | None,
    field: str,
    skip_bad: bool,
    beside_field: str = "labels",
) -> VectorSet:
    import pandas as pd

    facts: dict[str, Any]
    own, notes = pd.DataFrame(), tuple[str, ...]()
    if table is None:
        points, good, skipped = _array_rows(path, columns.points, field, skip_bad)
        facts = {"array": columns.points}
    else:
        of_table = columns if beside is None else columns.among(table.column_names)
        places = _places(table, of_table, field)
        dimensions = table_columns.dimensions_of(table, columns.points, set(places.values()), field)
        odd = [] if columns.points or len(dimensions) == 1 else table_columns.odd_columns(table, dimensions)
        rows = table_columns.Rows(dimensions, field, skip_bad)
        points, good, skipped = rows.whole(table), rows.kept, rows.skipped
        facts = {"dimensions": dimensions, "odd": odd}
        notes = searches.unused_note(table.column_names, {*dimensions, *places.values()})
        if address := (table.schema.metadata or {}).get(SAVED_FROM):
            facts["saved from"] = address.decode()
        own = _columns_of(table, of_table, field)
    facts |= {"skipped": skipped} if skipped else {}
    own = own.reindex(range(len(good)))
    row_data = own if beside is None else _joined(own, beside, columns, beside_field)
    found = from_points(points, row_data[good].reset_index(drop=True), facts=facts, field=field)
    return replace(found, notes=notes)


def _array_rows(path: str, name: str | None, field: str, skip_bad: bool) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
    """The points of an array file, which of its rows they are, and a sentence on those that were left out."""
    points = arrays.read(path, name, field)
    good = arrays.finite_rows(points) if skip_bad else np.ones(len(points), dtype=bool)
    if good.all():
        return points, good, ""
    bad = np.flatnonzero(~good)
    numbers = f"{len(bad):,} of {len(good):,} rows have numbers that are not finite, the first is row {bad[0] + 1}"
    return points[good], good, f"{numbers}; left out"


def _joined(own: pd.DataFrame, name: str | Path, columns: Columns, field: str) -> pd.DataFrame:
    """The rows with the columns of a table beside them: by id, where both have ids, else in the same order.

    Raises:
        InputError: the table has no known column, another number of rows, or none of these ids.
    """
    other = _beside(name, len(own), columns, field, by_id="id" in own)
    if "id" in other and "id" in own:
        by_id = other.set_index("id").reindex(own["id"]).reset_index()
        if not own["id"].isin(other["id"]).any():
            raise InputError.at(
                field,
                f"no row of the set has one of these ids, such as '{shortened(other['id'].iloc[0])}'",
                "Without a column 'id', rows are matched by their order.",
            )
        other = by_id
    return own.assign(**{str(column): other[column] for column in other})[
        [column for column in table_columns.NAMES if column in own or column in other]
    ]


def _beside(name: str | Path, n: int, columns: Columns, field: str, *, by_id: bool = False) -> pd.DataFrame:
    """Texts, labels, groups and ids from a table beside n vectors. A single column of another name holds labels, and needs no header:
    so the TensorFlow projector writes them.

    Args:
        by_id: a table with ids may have another number of rows.

    Raises:
        InputError: no column is known, or another number of rows.
    """
    import pandas as pd

    table = formats.read(name, field, columns.as_text)
    names = table.column_names
    if table_columns.places_of(names, columns, field):
        row_data = _columns_of(table, columns, field)
    elif len(names) == 1:
        headless = len(table) + 1 == n and names[0] != "1"
        row_data = pd.DataFrame(
            {"label": [*names, *table[0].cast("string").to_pylist()] if headless else table[0].to_pandas()}
        )
    else:
        shown = shortened(catalogue.title(str(name)))
        lacks = "no column 'label', 'text', 'group' or 'id'; name one of its columns"
        raise InputError.at(field, f"'{shown}' has {lacks}: {listed(names, 100)}")
    if len(row_data) != n and not (by_id and "id" in row_data):
        count = (
            f"{len(row_data):,} labels, but {n:,} rows"
            if by_id
            else f"{n:,} vectors, but {len(row_data):,} rows of texts, labels or ids"
        )
        header = (
            f"; the first line, '{shortened(names[0], 30)}', was read as the header" if len(row_data) + 1 == n else ""
        )
        by = "; add a column 'id' to match them" if by_id else ""
        raise InputError.at(field, f"{count}{header}{by}")
    return row_data


def _finished(
    content: Content,
    table: pa.Table | None,
    path: str,
    name: str | None,
    relations: str | Path | pairs.Relevance | None,
) -> Content:
    """The set with its title, and with the pairs of a file, if there is one. Of a store the title says which rows were drawn."""
    metadata = None if table is None else table.schema.metadata
    of_store = (metadata or {}).get(stores.TITLE, b"").decode()
    return _with_pairs(replace(content, name=name or of_store or catalogue.title(path)), relations)


def _with_pairs(content: Content, relations: str | Path | pairs.Relevance | None) -> Content:
    if relations is None:
        return content
    columns = searches.told_apart(content.columns)
    rated, relation, notes = pairs.read(relations, columns)
    for note in notes:
        warnings.warn(f"pairs: {note}", stacklevel=2)
    return replace(content, columns=columns, pairs=rated, relation=relation, notes=(*content.notes, *notes))


def array(name: str, column: str | None = None, field: str = "vectors", skip_bad: bool = False) -> NDArray[Any]:
    """The points of `named_array`."""
    return named_array(name, column, field, skip_bad)[0]


def named_array(name: str, column: str | None, field: str, skip_bad: bool = False) -> tuple[NDArray[Any], list[str]]:
    """The points of a file of any format, (n, d) with d at least 2, possibly memory-mapped; and the columns of a table with them.

    Args:
        name: the file, or another source (`hub:owner/name:split`).
        column: see `Columns.points`.
        skip_bad: leave out rows without a readable vector, with a warning.

    Raises:
        InputError: like `read`, except for few points; the numbers of an array file are not checked.
    """
    dimensions: list[str] = []
    if holds(name, field, VECTORS) == "array":
        points, _, skipped = _array_rows(name, column, field, skip_bad)
        if skipped:
            warnings.warn(f"{field}: {skipped}", stacklevel=2)
    else:
        points, dimensions = table_columns.points_of(name, column, field, skip_bad)
    if 0 in points.shape:
        raise InputError.at(field, f"'{name}' contains no points: its shape is {points.shape}")
    _require_dimensions(points, dimensions, field)
    return points, dimensions


def _require_dimensions(points: NDArray[Any], dimensions: Sequence[str], field: str) -> None:
    if points.shape[1] < 2:
        where = f" (column '{shortened(dimensions[0])}')" if dimensions else ""
        raise InputError.at(field, f"the vectors have {points.shape[1]} dimension{where}; at least 2 are needed")


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
        raise InputError.at(field, f"the shape is {points.shape}; expected (vectors, dimensions)")
    if points.dtype.kind not in "fiu":
        raise InputError.at(field, f"the array holds {points.dtype}, not numbers")
    n = len(points)
    if n < FEWEST:
        raise InputError.at(field, f"{n} vector{'' if n == 1 else 's'}; at least {FEWEST} are needed")
    _require_dimensions(points, (facts or {}).get("dimensions", ()), field)
    if points.dtype not in (np.float32, np.float64):
        arrays.check_finite(points, field)  # reports an overflow in the file's own type
        points = points.astype(np.float32 if points.dtype.itemsize <= 2 else np.float64)
    arrays.check_finite(points, field)
    row_data = pd.DataFrame(index=range(n)) if columns is None else columns
    return VectorSet(points, row_data, name=name, facts=facts or {})


def _texts_of(table: pa.Table, columns: Columns, field: str) -> TextSet:
    row_data, places = _columns_of(table, columns, field), _places(table, columns, field)
    if "text" not in row_data:
        texts = _text_columns(table, places.values())
        if len(texts) != 1:
            raise InputError.at(field, f"name the column of the texts (columns: {listed(table.column_names, 120)})")
        row_data, places["text"] = _columns_of(table, replace(columns, text=texts[0]), field), texts[0]
    notes = searches.unused_note(table.column_names, places.values())
    return replace(_checked_texts(row_data, "", field), notes=notes)


def from_texts(lines: Sequence[str], *, name: str = "pasted texts", field: str = "texts") -> TextSet:
    """Texts from lines, without empty ones. Raises like `read`."""
    import pandas as pd

    texts = [line.strip() for line in lines if line.strip()]
    return _checked_texts(pd.DataFrame({"text": pd.Series(texts, dtype="str")}), name, field)


def _checked_texts(row_data: pd.DataFrame, name: str, field: str) -> TextSet:
    if len(row_data) < FEWEST:
        raise InputError.at(
            field, f"{len(row_data)} text{'' if len(row_data) == 1 else 's'}; at least {FEWEST} are needed"
        )
    if len(row_data) > MOST_TEXTS:
        raise InputError.at(field, f"{len(row_data):,} texts; at most {MOST_TEXTS:,} are encoded")
    return TextSet(row_data, name)


def no_labels(name: str | Path) -> InputError:
    """The error of a table without a column of labels."""
    names = listed(formats.read(name, "labels").column_names, 100)
    title = shortened(catalogue.title(str(name)))
    return InputError.at("labels", f"'{title}' has no column 'label'; name one of its columns: {names}")


def names_file(text: str) -> bool:
    """Whether the value of an option that takes a column or a file names a file or another source."""
    every: tuple[Holds, ...] = ("table", "texts", "vectors", "array", "nothing")
    return catalogue.remote(text) is not None or catalogue.is_known(text, *every)


# ------------------------------------------------------------------------------------------------------------- helpers


def _text_columns(table: pa.Table, taken: Collection[str]) -> list[str]:
    return [name for name in table.column_names if name not in taken and _is_text(table.schema.field(name).type)]


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return table_columns.is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _places(table: pa.Table, columns: Columns, field: str) -> dict[str, str]:
    """Column of a set → column of the table, with the one that tells questions from documents as `group`."""
    places = table_columns.places_of(table.column_names, columns, field)
    telling = None if "group" in places or "id" not in places else searches.telling_column(table, places.values())
    return places if telling is None else {**places, "group": telling}


def _columns_of(table: pa.Table, columns: Columns, field: str) -> pd.DataFrame:
    """`id`, `text`, `label` and `group` of a table, if present, each of one type. Only ids must be complete."""
    import pandas as pd
    import pyarrow as pa

    places = _places(table, columns, field)
    roles = {}
    for column, place in places.items():
        kind = table.schema.field(place).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            held = "lists" if pa.types.is_list(kind) else f"{shortened(kind, 40)}"
            raise InputError.at(
                field, f"column '{shortened(place)}' holds {held}; {column} must have one value per row"
            )
        values = table[place].to_pandas()
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(object).infer_objects()
        if column == "text":
            plain = values if _is_text(kind) else values.astype(object).map(str, na_action="ignore")
            values = plain.fillna("").astype("str")
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
