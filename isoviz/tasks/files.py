"""Reading task data from files: parquet, csv, tsv or jsonl in a folder, only the requested columns and rows.

Over pandas and pyarrow, not `datasets.load_dataset(data_files=)`: that is no faster (0.1 to 0.5 s for 400,000 rows), keeps a
second copy of each file in a cache, gives no reason for a ragged or wrongly encoded csv, and loses rows of a tsv with a stray
quote without a word.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoviz import boundary, limits
from isoviz.errors import DataError, listed, shortened
from isoviz.tasks.protocol import SPLITS, TRAIN, VALIDATION, Task

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow

__all__ = ["MAX_TEXT_MB", "OPTIONAL", "SPLITS", "SUFFIXES", "chosen", "find", "first", "glance", "read", "tabular"]

SUFFIXES = (".parquet", ".csv", ".jsonl", ".tsv")
MAX_TEXT_MB = 100
"""Largest csv, tsv or jsonl, read whole. Parquet is read by column and, where rows are capped, by the groups that hold them."""
OPTIONAL = ("id",)
"""Read beside the wanted columns where a file has them."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_LONGEST_HEADER = 2**20
_EXTRA = "\0extra"
"""Column of what follows the last separator of a row."""
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")

Pick = Callable[[int], "np.ndarray"]
"""From the number of rows to the (ascending) numbers of those to read."""


def chosen(limit: int) -> Pick:
    """A random choice of `limit` rows, the same for every run; all where there are no more."""
    import numpy as np

    def pick(total: int) -> np.ndarray:
        if limit >= total:
            return np.arange(total)
        return np.sort(np.random.default_rng(0).choice(total, size=limit, replace=False))

    return pick


def glance(limit: int, head: int = 5) -> Pick:
    """The first `head` rows and a random choice of the others, `limit` in all: to look at, not to train on."""
    import numpy as np

    def pick(total: int) -> np.ndarray:
        top = min(head, limit, total)
        rest = chosen(limit - top)(total - top) + top
        return np.concatenate([np.arange(top), rest])

    return pick


def first(limit: int) -> Pick:
    """The first `limit` rows."""
    import numpy as np

    return lambda total: np.arange(min(limit, total))


def find(folder: str | Path, task: Task | None = None) -> dict[str, tuple[Path, ...]]:
    """The files of each split in a folder: `train.csv`, `validation.parquet`, or all shards `train-00000-of-00003.parquet`.

    Args:
        task: whose name of the validation split counts beside `validation`, and whose extra splits are taken if there.
    """
    root = boundary.folder(folder, "data", DataError)
    if root is None:
        raise DataError(f"data: '{folder}' is not a folder that this machine can read", field="data")
    paths_of: dict[str, tuple[Path, ...]] = {}
    second = (task.validation,) if task is not None and task.validation != VALIDATION else ()
    for split, names in {TRAIN: (TRAIN,), VALIDATION: (*second, VALIDATION)}.items():
        paths = next((paths for name in names if (paths := of_split(root, name))), ())
        if not paths:
            looked = ", ".join(name + suffix for name in names for suffix in SUFFIXES)
            raise DataError(f"data: no {split} split in '{folder}' (looked for {looked})", field="data")
        paths_of[split] = paths
    for split, name in task.extra if task is not None else ():
        if paths := of_split(root, name):
            paths_of[split] = paths
    return paths_of


def of_split(root: Path, split: str) -> tuple[Path, ...]:
    """The one file of a split, or its complete shards."""
    matches = sorted(
        path for path in root.iterdir() if path.suffix in SUFFIXES and path.name.split(".")[0].split("-")[0] == split
    )
    for path in matches:
        boundary.file(path, "data", DataError)
    shards = [match for path in matches if (match := _SHARD.search(path.stem))]
    if (
        len(shards) == len(matches) > 1
        and len({(m[2], path.suffix) for m, path in zip(shards, matches, strict=True)}) == 1
    ):
        missing = sorted(set(range(int(shards[0][2]))) - {int(match[1]) for match in shards})
        if missing:
            raise DataError(
                f"data: the {split} split in '{root}' lacks part {missing[0]} of {int(shards[0][2])} (counted from 0)",
                field="data",
            )
    elif len(matches) > 1:
        names = listed(path.name for path in matches)
        raise DataError(f"data: several files for the {split} split in '{root}' ({names}); keep one", field="data")
    return tuple(matches)


def read(paths: Sequence[Path], places: Mapping[str, str], pick: Pick | None = None) -> pd.DataFrame:
    """Raw values of one file, or of several that belong together. Only checks that the columns exist.

    Args:
        places: column of the result → column in the files; `a.b` is field b of the nested column a, or the column b.
        pick: which rows; all if None. Of parquet only the row groups that hold them are read.

    Returns:
        These columns (and those of `OPTIONAL` that are there), indexed by row number from 0 in the files.

    Raises:
        DataError: for what cannot be read as a table with these columns.
    """
    import pandas as pd

    if all(path.suffix == ".parquet" for path in paths):
        return _read_parquet(paths, places, pick)
    frames = []
    for path in paths:
        frame = tabular(path, as_text=[place.lower() for name, place in places.items() if name != "label"])
        limits.check(path.name, columns=frame.shape[1], rows=len(frame), cells=frame.size)
        _require(path, [str(name) for name in frame.columns], list(places.values()))
        frames.append(columns_of(frame, places))
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    return frame if pick is None else frame.iloc[pick(len(frame))]


def columns_of(frame: pd.DataFrame, places: Mapping[str, str]) -> pd.DataFrame:
    """The columns at these places of a raw frame, taken out of nested ones where needed."""
    import pandas as pd

    columns = {name: _values(frame, place) for name, place in places.items()}
    columns |= {name: frame[name] for name in OPTIONAL if name in frame.columns and name not in columns}
    return pd.DataFrame(columns, index=frame.index)


def tabular(path: Path, rows: int | None = None, as_text: Collection[str] = ()) -> pd.DataFrame:
    """A whole csv, tsv, jsonl or parquet file (or its first rows) as a table of raw values; `DataError` if it is none.

    Args:
        as_text: columns of a csv or tsv, in lower case, in which 1.50 stays 1.50. In other columns it is a number, but 01 is not.
    """
    import pandas as pd
    import pyarrow.parquet

    size, suffix = _size(path), path.suffix.lower()
    if suffix != ".parquet" and size > MAX_TEXT_MB and rows is None:
        raise DataError(
            f"data: {path.name} has {size:.0f} MB; csv and jsonl are read up to {MAX_TEXT_MB} MB, save it as parquet",
            field="data",
        )
    try:
        with _parsing(path):
            if suffix == ".parquet":
                file = pyarrow.parquet.ParquetFile(path)
                width = len(file.schema_arrow.names)
                read = file.metadata.num_rows if rows is None else min(rows, file.metadata.num_rows)
                limits.check(path.name, columns=width, rows=read, cells=read * width)
                if rows is None:
                    return pd.read_parquet(path)
                batches = file.iter_batches(batch_size=max(1, rows))
                return next((batch.to_pandas().head(rows) for batch in batches), pd.DataFrame())
            if suffix == ".jsonl":
                frame = pd.DataFrame(_json_lines(path, rows))
                _require_text(path, frame)
                return frame
            return _separated(path, rows, as_text)
    except DataError as error:
        cause = error.__cause__
        if cause is None:  # a limit
            raise
        if isinstance(cause, UnicodeDecodeError):
            byte = f"byte 0x{cause.object[cause.start]:02x} at position {cause.start}"
            raise DataError(f"data: {path.name} is not UTF-8 ({byte}); save it as UTF-8", field="data") from None
        raise


def _require_text(path: Path, frame: pd.DataFrame) -> None:
    """JSON can write half of a character (a lone surrogate), which nothing can store or show."""
    for name in frame.columns:
        texts = [str(name), *(value for value in frame[name] if isinstance(value, str))]
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            column_text = f"the column '{shortened(name)}'"
            raise DataError(
                f"data: {path.name}: {column_text} has half a character (a lone surrogate)", field="data"
            ) from None


def _parsing(path: Path) -> AbstractContextManager[None]:
    """Around what pandas and pyarrow make of a file: whatever they raise is the file's fault."""
    return boundary.parsing(f"{path.name} cannot be read as {path.suffix[1:]}", "data", DataError)


def _json_lines(path: Path, rows: int | None) -> list[dict[str, Any]]:
    """The objects of a jsonl file, or of its first lines. `DataError` with the number of a line that is none."""
    objects: list[dict[str, Any]] = []
    decode = json.JSONDecoder(object_pairs_hook=_distinct).decode  # `json.loads` would make one per line
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(map(str.strip, lines), start=1):
            if len(objects) == rows:
                break
            if not line:
                continue
            try:
                value = decode(line)
                problem = None if isinstance(value, dict) else "not an object"
            except _RepeatedKeyError as error:
                problem = f"an object with two keys '{shortened(str(error))}'"
            except (ValueError, RecursionError):
                problem = "not JSON"
            if problem:
                raise DataError(f"data: {path.name} cannot be read as jsonl: line {number} is {problem}", field="data")
            objects.append(value)
    return objects


class _RepeatedKeyError(Exception):
    """A key that is twice in a JSON object."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise _RepeatedKeyError(next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number])))
    return content


@dataclass(frozen=True)
class CsvLayout:
    """How the lines of a csv or tsv are cut.

    Attributes:
        separator: tab, comma or semicolon. A csv has semicolons, and decimal commas, if its header has semicolons and no
            comma.
        names: of the columns as pandas has them: none is empty, and none is there twice. Numbers from 1 if there is no header.
        header: lines of the header: 1, or 0 if the first line holds the numbers of a row.
        blank: lines before the header that are empty.
        extra: whether the first row ends in a separator and the header does not.
    """

    separator: str
    names: tuple[str, ...]
    header: int
    blank: int
    extra: bool


def csv_layout(path: Path, quoting: Any = csv.QUOTE_MINIMAL) -> CsvLayout:
    """`DataError` where the first row has more cells than the header: pandas would drop them, or make an index of them."""
    import pandas as pd

    blank = 0
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        while (header := lines.readline(_LONGEST_HEADER)) and not header.strip(" \r\n"):
            blank += 1
        second = lines.readline(_LONGEST_HEADER)
    separator = ";" if ";" in header and ("," not in header or _are_values(header.split(";"))) else ","
    if path.suffix.lower() == ".tsv":
        separator = "\t"
    limits.check(path.name, columns=1 + max(header.count(separator), second.count(separator)))  # pandas takes minutes

    def parse(**options: Any) -> pd.DataFrame:
        return pd.read_csv(path, sep=separator, encoding="utf-8-sig", engine="c", quoting=quoting, **options)

    names = tuple(parse(nrows=0, index_col=False).columns)
    written = parse(nrows=1, header=None, skiprows=blank, dtype="str", keep_default_na=False).iloc[0]
    if _are_values(written):
        warnings.warn(
            f"{path.name} has no header: its first line is read as a row, and its columns are numbered", stacklevel=2
        )
        return CsvLayout(separator, tuple(map(str, range(1, len(names) + 1))), 0, blank, extra=False)
    try:
        first = parse(nrows=1, header=None, skiprows=blank + 1, dtype="str", keep_default_na=False)
    except pd.errors.EmptyDataError:
        return CsvLayout(separator, names, 1, blank, extra=False)
    extra = first.shape[1] - len(names)
    layout = CsvLayout(separator, names, 1, blank, extra == 1)
    if extra > 1 or (layout.extra and first.iloc[0, -1] != ""):
        raise too_many_cells(path, layout, 1)
    return layout


def _are_values(cells: Iterable[str]) -> bool:
    """Whether the first line of a table is a row: mostly numbers, with decimal points or commas, that do not count the columns."""
    import pandas as pd

    numbers = pd.to_numeric(pd.Series([cell.replace(",", ".") for cell in cells]), errors="coerce")
    written = numbers.dropna()
    counts = len(written) > 3 or written.iloc[:1].isin([0, 1]).any()
    return 2 * len(written) > len(numbers) and not (counts and (written.diff().dropna() == 1).all())


def too_many_cells(path: Path, layout: CsvLayout, row: int) -> DataError:
    """Of a row, counted from 1, that has more cells than the header."""
    return DataError(
        f"data: {path.name}: row {row} has more cells than the header ({len(layout.names)}); put texts that contain "
        f"{_SEPARATORS[layout.separator]} in double quotes",
        field="data",
    )


def _separated(path: Path, rows: int | None, as_text: Collection[str]) -> pd.DataFrame:
    """A csv, or a tsv; of a tsv quotes are plain characters if reading them as quotes runs cells over lines."""
    import pandas as pd

    def attempt(quoting: Any) -> pd.DataFrame:
        layout = csv_layout(path, quoting)
        # keep_default_na=False: "None" and "NA" are words of a sentence before they are missing values
        options: dict[str, Any] = {
            "sep": layout.separator,
            "decimal": "," if layout.separator == ";" else ".",
            "encoding": "utf-8-sig",
            "keep_default_na": False,
            "na_values": [""],
            "engine": "c",
            "quoting": quoting,
            "nrows": rows,
            "index_col": False,
            "header": 0 if layout.header else None,
            "names": [*layout.names, *([_EXTRA] if layout.extra else ())],
        }
        as_written = {name: "str" for name in layout.names if name.lower() in as_text}
        frame: pd.DataFrame = pd.read_csv(path, dtype=as_written, **options)
        whole = [
            name for name in layout.names if frame[name].dtype.kind in "if" and (frame[name].dropna() % 1 == 0).all()
        ]
        if whole:  # 01 is no number, but a code that differs from 1
            written: pd.DataFrame = pd.read_csv(path, usecols=whole, dtype="str", **options)
            codes = [name for name in whole if written[name].str.match(r"[+-]?0\d").any()]
            frame[codes] = written[codes]
        if layout.extra:
            beyond = frame.pop(_EXTRA).notna().to_numpy()
            if beyond.any():
                raise too_many_cells(path, layout, int(beyond.argmax()) + 1)
        return frame

    if path.suffix.lower() != ".tsv":
        return attempt(csv.QUOTE_MINIMAL)
    try:
        frame = attempt(csv.QUOTE_MINIMAL)
    except (pd.errors.ParserError, DataError):
        return attempt(csv.QUOTE_NONE)
    texts = frame.select_dtypes(include=["object", "string"])
    if any(texts[column].astype(str).str.contains("\n", regex=False).any() for column in texts):
        return attempt(csv.QUOTE_NONE)
    return frame


def _read_parquet(paths: Sequence[Path], columns: Mapping[str, str], pick: Pick | None) -> pd.DataFrame:
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    for path in paths:
        _size(path)
    with _parsing(paths[0]):
        files = [pyarrow.parquet.ParquetFile(path) for path in paths]
        sizes = [file.metadata.num_rows for file in files]
        if pick is None:
            limits.check(paths[0].name, rows=sum(sizes))
        rows = np.arange(sum(sizes)) if pick is None else pick(sum(sizes))
        tables = []
        begin = 0
        for path, file, size in zip(paths, files, sizes, strict=True):
            present = file.schema_arrow.names
            _require(path, present, list(columns.values()))
            heads = [head for place in columns.values() if (head := _source_column(present, place))]
            heads += [name for name in OPTIONAL if name in present]
            file_rows = rows[(rows >= begin) & (rows < begin + size)] - begin
            wide = list(dict.fromkeys(heads))
            limits.check(path.name, columns=len(present), rows=len(file_rows), cells=len(file_rows) * len(wide))
            tables += groups(file, wide, file_rows, path.name)
            begin += size
        if not tables:
            tables = [file.schema_arrow.empty_table() for file in files[:1]]
        frame = to_frame(pyarrow.concat_tables(tables))
    frame.index = rows
    return columns_of(frame, columns)


def to_frame(table: pyarrow.Table) -> pd.DataFrame:
    """The rows as Python objects, which costs many times what reading them does."""
    return table.to_pandas()


def groups(file: pyarrow.parquet.ParquetFile, columns: list[str], rows: np.ndarray, name: str) -> list[pyarrow.Table]:
    """The given rows of one file, from the row groups that hold any of them, one group in memory at a time."""
    tables = []
    begin = 0
    decoded = 0
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        batch_rows = rows[(rows >= begin) & (rows < begin + size)] - begin
        if len(batch_rows):
            limits.check(name, rows=size, expanded=decoded + _declared_size(file, group, columns))
            table = file.read_row_group(group, columns=columns)
            tables.append(table if len(batch_rows) == size else table.take(batch_rows))
            decoded += tables[-1].nbytes  # repeated values take no place in a file
            limits.check(name, expanded=decoded)
        begin += size
    return tables


def _declared_size(file: pyarrow.parquet.ParquetFile, group: int, columns: Sequence[str]) -> int:
    """Uncompressed bytes of these columns in a row group, by the file's metadata."""
    record = file.metadata.row_group(group)
    chunks = (record.column(number) for number in range(record.num_columns))
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns)


def _source_column(present: Sequence[str], place: str) -> str | None:
    """The column that a place is read from: itself, the nested one, or the plain one of the field's name."""
    head, _, field = place.partition(".")
    return next((name for name in (place, head, field) if name and name in present), None)


def _values(frame: pd.DataFrame, place: str) -> pd.Series:
    import pandas as pd

    name = _source_column([str(column) for column in frame.columns], place)
    assert name is not None
    field = place.partition(".")[2]
    if name in (place, field):
        return frame[name]
    return pd.Series([_field(value, field) for value in frame[name]], index=frame.index, dtype="object")


def _field(value: object, field: str) -> object:
    """One field of a nested value; csv holds those as JSON. None if there is no such field."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value.get(field) if isinstance(value, dict) else None


def _require(path: Path, present: Sequence[str], places: Sequence[str]) -> None:
    missing = list(dict.fromkeys(place for place in places if _source_column(present, place) is None))
    if missing:
        raise DataError(
            f"data: {path.name} lacks the column{'s' if len(missing) > 1 else ''} {listed(missing, 60)} "
            f"(it has {listed(present, 80) or 'none'}; needed: {listed(places, 60)})",
            field="data",
        )


def _size(path: Path) -> float:
    """Megabytes of a plain file that is there and not empty."""
    size = boundary.file(path, "data", DataError).stat().st_size / 1e6
    if size == 0:
        raise DataError(f"data: {path.name} is empty", field="data")
    return size
