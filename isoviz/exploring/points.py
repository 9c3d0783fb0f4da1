"""Tables that describe the points of a cloud by row or token, stored with the arrays."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.tasks.protocol import Task

ROWS: Final = "rows.parquet"
TOKENS: Final = "tokens.parquet"
"""Names of the packed tables in a view's arrays."""

ADDED: Final = ("row", "token", "length", "prediction", "error")
"""Computed columns, not from the data."""


def rows(
    frame: pd.DataFrame, task: Task, lengths: NDArray[np.int64], logits: NDArray[np.float32] | None = None
) -> pd.DataFrame:
    """One line per row: number, columns (labels by name), length in tokens; with logits, also the head's prediction.

    Args:
        frame: (n) rows of the task.
        lengths: (n,) tokens read of each row.
        logits: (n, labels) of a head for this task. `prediction` is the most likely label and `error` is 1 minus the probability
            of the true label; for a single output, the number itself and its distance from the label.
    """
    table = frame.reset_index(drop=True)
    for name in table.columns[[column in ADDED for column in table.columns]]:
        table = table.rename(columns={name: f"{name} (data)"})
    names = task.label_names
    codes = frame["label"].to_numpy() if "label" in frame else None
    if names and codes is not None:
        table["label"] = [names[int(code)] for code in codes]
    table.insert(0, "row", np.arange(len(table)))
    table["length"] = lengths
    if logits is None or codes is None:
        return table
    if names and logits.shape[1] == len(names):
        raised = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
        shares = raised / raised.sum(axis=1, keepdims=True)
        table["prediction"] = [names[int(code)] for code in logits.argmax(axis=1)]
        table["error"] = 1.0 - shares[np.arange(len(codes)), codes.astype(int)]
    elif logits.shape[1] == 1:
        table["prediction"] = logits[:, 0].astype(np.float64)
        table["error"] = np.abs(logits[:, 0] - codes)
    return table


def texts(table: pd.DataFrame, task: Task) -> list[str]:
    """Text of each point: its texts; without texts, its id or row number."""
    columns = [name for name in task.columns if name in table]
    if columns:
        joined = (
            table[columns].astype(str).agg(" ‖ ".join, axis=1) if len(columns) > 1 else table[columns[0]].astype(str)
        )
    else:
        joined = table["id"].astype(str) if "id" in table else "row " + (table["row"] + 1).astype(str)
    return list(table["token"] + " · " + joined if "token" in table else joined)


def packed(table: pd.DataFrame) -> NDArray[np.uint8]:
    """The table as the bytes of a Parquet file; values without a Parquet type become text."""
    import pandas as pd

    safe = table.copy()
    for name in safe.columns:
        if safe[name].dtype == object and safe[name].map(_is_nested).any():
            safe[name] = safe[name].map(str)
    buffer = io.BytesIO()
    pd.DataFrame(safe).to_parquet(buffer, index=False)
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def _is_nested(value: object) -> bool:
    return isinstance(value, (list, tuple, dict, np.ndarray))


def unpacked(content: NDArray[Any]) -> pd.DataFrame:
    """The inverse of `packed`."""
    import pandas as pd

    return pd.read_parquet(io.BytesIO(content.tobytes()))
