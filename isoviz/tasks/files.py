"""Reading task data from files: parquet, csv or jsonl in a folder, checked before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.errors import DataError
from isoviz.tasks.protocol import Task

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".parquet", ".csv", ".jsonl")
SPLITS = ("train", "validation")
MAX_TEXT_MB = 100
"""Largest csv or jsonl that is read whole; parquet is read by column and has no limit."""


def find(folder: str | Path) -> dict[str, Path]:
    """The file of each split in a folder: `train.csv`, `validation.parquet`, also `train-00000-of-00001.parquet`."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DataError(f"data: '{folder}' is not a folder that this machine can read", field="data")
    found: dict[str, Path] = {}
    for split in SPLITS:
        matches = sorted(
            path
            for path in root.iterdir()
            if path.suffix in SUFFIXES and path.name.split(".")[0].split("-")[0] == split
        )
        if not matches:
            names = ", ".join(split + suffix for suffix in SUFFIXES)
            raise DataError(f"data: no {split} split in '{folder}' (looked for {names})", field="data")
        if len(matches) > 1:
            names = ", ".join(path.name for path in matches)
            raise DataError(
                f"data: several files for the {split} split in '{folder}' ({names}); keep one", field="data"
            )
        found[split] = matches[0]
    return found


def read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The named columns of one file, unchecked values; `DataError` for what cannot be read as a table with these columns."""
    import pandas as pd
    import pyarrow.lib
    import pyarrow.parquet

    size = path.stat().st_size / 1e6
    if path.suffix != ".parquet" and size > MAX_TEXT_MB:
        raise DataError(
            f"data: {path.name} has {size:.0f} MB; csv and jsonl are read up to {MAX_TEXT_MB} MB, save it as parquet",
            field="data",
        )
    if size == 0:
        raise DataError(f"data: {path.name} is empty", field="data")
    try:
        if path.suffix == ".parquet":
            present = pyarrow.parquet.read_schema(path).names
            _require(path, present, columns)
            return pd.read_parquet(path, columns=list(columns))
        if path.suffix == ".csv":
            # keep_default_na=False: "None" and "NA" are words of a sentence before they are missing values
            frame = pd.read_csv(path, encoding="utf-8-sig", keep_default_na=False, na_values=[""], engine="c")
        else:
            frame = pd.read_json(path, lines=True, encoding="utf-8", dtype=False, convert_dates=False)
    except UnicodeDecodeError as error:
        raise DataError(
            f"data: {path.name} is not UTF-8 (byte 0x{error.object[error.start]:02x} at position {error.start}); save it as UTF-8",
            field="data",
        ) from None
    except (pyarrow.lib.ArrowException, pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"data: {path.name} cannot be read as {path.suffix[1:]}: {reason}", field="data") from None
    _require(path, [str(name) for name in frame.columns], columns)
    return frame[list(columns)]


def _require(path: Path, present: Sequence[str], columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in present]
    if missing:
        raise DataError(
            f"data: {path.name} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)} "
            f"(it has {', '.join(present) or 'none'}; needed: {', '.join(columns)})",
            field="data",
        )


def check(frame: pd.DataFrame, task: Task, name: str) -> pd.DataFrame:
    """Rows with texts as str and labels as int64 codes; `DataError` names the first rows (counted from 1) at fault."""
    import pandas as pd

    if len(frame) == 0:
        raise DataError(f"data: {name} has no rows", field="data")
    checked: dict[str, pd.Series] = {}
    for column in task.columns:
        empty = frame[column].isna() | (frame[column].astype(str).str.strip() == "")
        _refuse(empty, f"{name}: empty '{column}'")
        checked[column] = frame[column].astype(str)
    labels = frame[task.label]
    _refuse(labels.isna(), f"{name}: empty '{task.label}'")
    if task.kind == "regression":
        checked["label"] = labels.astype("float64")
        return pd.DataFrame(checked).reset_index(drop=True)
    if pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels):
        codes = labels
    else:
        by_name = {label: code for code, label in enumerate(task.label_names)}
        by_name |= {str(code): code for code in range(len(task.label_names))}
        codes = labels.astype(str).map(by_name)
    allowed = ", ".join(f"{code} = {label}" for code, label in enumerate(task.label_names))
    _refuse(~codes.isin(range(len(task.label_names))), f"{name}: '{task.label}' must be one of {allowed};", labels)
    checked["label"] = codes.astype("int64")
    if checked["label"].nunique() < 2:
        only = task.label_names[int(checked["label"].iloc[0])]
        raise DataError(f"data: {name} has one class only ('{only}'); at least two are needed", field="data")
    return pd.DataFrame(checked).reset_index(drop=True)


def _refuse(bad: pd.Series, what: str, values: pd.Series | None = None) -> None:
    if not bad.any():
        return
    rows = [int(i) for i in bad.to_numpy().nonzero()[0]]
    shown = ", ".join(str(i + 1) for i in rows[:5]) + (", …" if len(rows) > 5 else "")
    got = f" got {values.iloc[rows[0]]!r}" if values is not None else ""
    raise DataError(f"data: {what}{got} in {len(rows)} row{'s' if len(rows) > 1 else ''} ({shown})", field="data")
