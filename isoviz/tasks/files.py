"""The rows of a task from its files or the hub: only the requested columns and rows, as raw values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz import input_validation
from isoviz.errors import DataError, listed
from isoviz.tables import catalogue, formats, hub_rows, json_rows
from isoviz.tables.protocol import refused
from isoviz.tasks.protocol import TRAIN, VALIDATION, Task

if TYPE_CHECKING:
    import datasets
    import numpy as np
    import pandas as pd

OPTIONAL = ("id",)
"""Read beside the wanted columns where a file has them."""
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")

Pick = Callable[[int], "np.ndarray"]
"""From the number of rows to the (ascending) numbers of those to read."""


def allowed() -> tuple[str, ...]:
    """The endings of a task's files; text files may be gzipped. A folder of rows has JSON documents of other kinds."""
    return tuple(ending for ending in catalogue.endings("table") if ending != ".json")


def is_table(path: Path) -> bool:
    """Whether a file's ending is that of a task's files."""
    return catalogue.ending_of(path).removesuffix(catalogue.GZIP) in allowed()


def chosen(limit: int) -> Pick:
    """A random choice of `limit` rows, the same for every run; all where there are no more."""
    import numpy as np

    def pick(total: int) -> np.ndarray:
        if limit >= total:
            return np.arange(total)
        # not `draw`: it chooses other rows, and a stored run must find its own again
        return np.sort(np.random.default_rng(0).choice(total, size=limit, replace=False))

    return pick


def glance(limit: int) -> Pick:
    """The first five rows and a random choice of the others, `limit` in all: to look at, not to train on."""
    import numpy as np

    def pick(total: int) -> np.ndarray:
        top = min(5, limit, total)
        rest = chosen(limit - top)(total - top) + top
        return np.concatenate([np.arange(top), rest])

    return pick


def first(limit: int) -> Pick:
    """The first `limit` rows."""
    import numpy as np

    return lambda total: np.arange(min(limit, total))


def find(folder: str | Path, task: Task) -> dict[str, tuple[Path, ...]]:
    """The files of each split in a folder: `train.csv`, `validation.parquet`, or all shards `train-00000-of-00003.parquet`.

    Args:
        task: whose name of the validation split counts beside `validation`, and whose extra splits are taken if there.
    """
    root = input_validation.folder(folder, "data", DataError)
    if root is None:
        raise refused(f"'{folder}' is not a folder that this machine can read")
    paths_of: dict[str, tuple[Path, ...]] = {}
    for split, names in {TRAIN: (TRAIN,), VALIDATION: tuple(dict.fromkeys((task.validation, VALIDATION)))}.items():
        paths_of[split] = next((paths for name in names if (paths := of_split(root, name))), ())
        if not paths_of[split]:
            looked = f"{' and '.join(names)} as {', '.join(allowed())}"
            raise refused(f"no {split} split in '{folder}' (looked for {looked})")
    extra = {split: of_split(root, name) for split, name in task.extra}
    return paths_of | {split: paths for split, paths in extra.items() if paths}


def of_split(root: Path, split: str) -> tuple[Path, ...]:
    """The one file of a split, or its complete shards."""
    matches = sorted(
        path for path in root.iterdir() if is_table(path) and path.name.split(".")[0].split("-")[0] == split
    )
    shards = [match for path in matches if (match := _SHARD.search(path.stem))]
    if (
        len(shards) == len(matches) > 1
        and len({(match[2], path.suffix) for match, path in zip(shards, matches, strict=True)}) == 1
    ):
        missing = sorted(set(range(int(shards[0][2]))) - {int(match[1]) for match in shards})
        if missing:
            raise refused(
                f"the {split} split in '{root}' lacks part {missing[0]} of {int(shards[0][2])} (counted from 0)"
            )
    elif len(matches) > 1:
        names = listed(path.name for path in matches)
        raise refused(f"several files for the {split} split in '{root}' ({names}); keep one")
    return tuple(input_validation.file(path, "data", DataError) for path in matches)


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

    if all(catalogue.identified(path, "table").slug == "parquet" for path in paths):
        return _read_parquet(paths, places, pick)
    frames = []
    for path in paths:
        frame = tabular(path, as_text=[place.lower() for name, place in places.items() if name != "label"])
        _require(path.name, list(map(str, frame.columns)), places.values())
        frames.append(columns_of(frame, places))
    frame = pd.concat(frames, ignore_index=True)
    return frame if pick is None else frame.iloc[pick(len(frame))]


def columns_of(frame: pd.DataFrame, places: Mapping[str, str]) -> pd.DataFrame:
    """The columns at these places of a raw frame, taken out of nested ones where needed."""
    import pandas as pd

    columns = {name: _values(frame, place) for name, place in places.items()}
    columns |= {name: frame[name] for name in OPTIONAL if name in frame.columns and name not in columns}
    return pd.DataFrame(columns, index=frame.index)


def tabular(path: Path, rows: int | None = None, as_text: Collection[str] = ()) -> pd.DataFrame:
    """A whole file, or its first rows, as a table of raw values; see `isoviz.tables.formats.file_table`. A column of JSON lines may
    hold values of several types.
    """
    import pandas as pd

    input_validation.file(path, "data", DataError)
    format = catalogue.identified(path, "table")
    if format.slug != "jsonl":
        frame: pd.DataFrame = formats.file_table(path, rows, as_text, ("table",)).to_pandas()
        return frame
    with catalogue.parsing(path, format), catalogue.unpacked(path, format) as plain:
        formats.require_size(plain, format, rows)
        return pd.DataFrame(islice(json_rows.json_lines(plain), rows))


def from_hub(
    task: Task, columns: Mapping[str, str], picks: Mapping[str, Pick | None]
) -> tuple[dict[str, pd.DataFrame], str | None]:
    """The chosen rows of each split of a task's data set, raw, and its commit; see `isoviz.tables.hub_rows.load`.

    Args:
        columns: our name of a column → where it lies in the data set.
        picks: split → which of its rows; None for all.
    """
    assert task.hub is not None
    title = "/".join(filter(None, task.hub))
    subject = f"data: '{title}', the data of '{task.slug}',"
    splits = {TRAIN: TRAIN, VALIDATION: task.validation, **dict(task.extra)}
    loaded, commit = hub_rows.load(
        *task.hub, list(splits.values()), subject, "give a folder with train and validation files"
    )
    frames = zip(splits, loaded, strict=True)
    return {split: _of_data_set(rows, title, columns, picks[split]) for split, rows in frames}, commit


def _of_data_set(rows: datasets.Dataset, title: str, places: Mapping[str, str], pick: Pick | None) -> pd.DataFrame:
    _require(f"'{title}'", rows.column_names, places.values())
    rows = rows.select_columns(_sources(rows.column_names, places))
    numbers = None if pick is None else pick(len(rows))
    frame: pd.DataFrame = (rows if numbers is None else rows.select(numbers)).to_pandas()
    if numbers is not None:
        frame.index = numbers
    return columns_of(frame, places)


def _read_parquet(paths: Sequence[Path], places: Mapping[str, str], pick: Pick | None) -> pd.DataFrame:
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    with catalogue.parsing(paths[0], catalogue.catalogue()["parquet"]):
        files = [pyarrow.parquet.ParquetFile(input_validation.file(path, "data", DataError)) for path in paths]
        total = sum(file.metadata.num_rows for file in files)
        rows = np.arange(total) if pick is None else pick(total)
        tables = []
        begin = 0
        for path, file in zip(paths, files, strict=True):
            _require(path.name, file.schema_arrow.names, places.values())
            columns = _sources(file.schema_arrow.names, places)
            # one at a time in memory, and only those with wanted rows
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                wanted = rows[(rows >= begin) & (rows < begin + size)] - begin
                if len(wanted):
                    tables.append(file.read_row_group(group, columns=columns).take(wanted))
                begin += size
        frame = pyarrow.concat_tables(tables or [files[0].schema_arrow.empty_table()]).to_pandas()
    frame.index = rows
    return columns_of(frame, places)


def _sources(present: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """The columns to read for these places, and those of `OPTIONAL` that are there."""
    found = [head for place in places.values() if (head := _source_column(present, place))]
    return list(dict.fromkeys([*found, *(name for name in OPTIONAL if name in present)]))


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


def _require(title: str, present: Sequence[str], places: Collection[str]) -> None:
    missing = list(dict.fromkeys(place for place in places if _source_column(present, place) is None))
    if missing:
        raise refused(
            f"{title} lacks the column{'s' if len(missing) > 1 else ''} {listed(missing, 60)} "
            f"(it has {listed(present, 80) or 'none'}; needed: {listed(places, 60)})"
        )
