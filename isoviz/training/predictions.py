"""Predictions of a run on its validation rows: one parquet file in its folder, written atomically."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoviz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.tasks.protocol import Task
    from isoviz.training.heads import Answers

FILE = "arrays/predictions.parquet"
"""File name in the run's folder."""
MAX_ROWS = 20_000
"""Most validation rows saved."""
_ABOUT = b"isoviz"


@dataclass(frozen=True)
class Predictions:
    """Saved predictions.

    Attributes:
        table: one line per row, in the order of the validation rows: `row` (number from 1), `prediction` (class code, number
            or text), `label` (the same; for question answering the list of correct texts), and for classes `confidence`, the
            predicted class's probability.
        epoch: the epoch after which they were made.
        rows: total validation rows, which may exceed the table's `MAX_ROWS`.
    """

    table: pd.DataFrame
    epoch: int
    rows: int


def save(run_dir: Path, task: Task, frame: pd.DataFrame, answers: Answers, epoch: int) -> None:
    """Write the predictions of an epoch, replacing an earlier epoch's.

    Args:
        frame: the validation rows, as in `TaskData`.
        answers: one per row of it.
    """
    import pyarrow
    import pyarrow.parquet

    row_count = min(len(frame), MAX_ROWS)
    columns: dict[str, Any] = {
        "row": pyarrow.array(range(1, row_count + 1), pyarrow.int32()),
        "prediction": pyarrow.array(answers.values[:row_count]),
        "label": pyarrow.array(frame[task.reference].head(row_count).tolist()),
    }
    if answers.confidence is not None:
        columns["confidence"] = pyarrow.array(answers.confidence[:row_count], pyarrow.float32())
    about = json.dumps({"epoch": epoch, "rows": len(frame)}).encode()
    path = run_dir / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    pyarrow.parquet.write_table(pyarrow.table(columns).replace_schema_metadata({_ABOUT: about}), partial)
    partial.replace(path)


def load(run_dir: Path) -> Predictions | None:
    """The saved predictions of a run; None if there are none.

    Raises:
        DataError: the file cannot be read.
    """
    import pyarrow
    import pyarrow.parquet

    path = run_dir / FILE
    if not path.is_file():
        return None
    try:
        table = pyarrow.parquet.read_table(path)
        about = json.loads(table.schema.metadata[_ABOUT])
        return Predictions(table.to_pandas(), int(about["epoch"]), int(about["rows"]))
    except (pyarrow.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"data: {path.name} of this run cannot be read: {reason}", field="data") from None
