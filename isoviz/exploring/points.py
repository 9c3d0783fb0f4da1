"""What each point of a cloud is: the row it comes from, or the token, as a table that lies with the arrays."""

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
"""Names of the packed tables among a view's arrays."""

ADDED: Final = ("row", "token", "length", "prediction", "error")
"""Columns that are not the data's own."""


def rows(
    frame: pd.DataFrame, task: Task, lengths: NDArray[np.int64], logits: NDArray[np.float32] | None = None
) -> pd.DataFrame:
    """One line per row: its number, its columns with labels by name, its length in tokens; with logits what a head makes of it.

    Args:
        frame: rows of the task, (n) lines.
        lengths: (n,) tokens read of each.
        logits: (n, labels) of a head for this task. `prediction` is the likeliest label and `error` 1 less its probability
            of the true one; for a single output the number itself and how far it lies off.
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
    """What each point says: its texts; of vectors without texts its id, or the number of its row."""
    columns = [name for name in task.columns if name in table]
    if columns:
        found = (
            table[columns].astype(str).agg(" ‖ ".join, axis=1) if len(columns) > 1 else table[columns[0]].astype(str)
        )
    else:
        found = table["id"].astype(str) if "id" in table else "row " + (table["row"] + 1).astype(str)
    return list(table["token"] + " · " + found if "token" in table else found)


def packed(table: pd.DataFrame) -> NDArray[np.uint8]:
    """The table as the bytes of a Parquet file; what Parquet has no type for becomes text."""
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


def unpacked(found: NDArray[Any]) -> pd.DataFrame:
    """What `packed` was given."""
    import pandas as pd

    return pd.read_parquet(io.BytesIO(found.tobytes()))
