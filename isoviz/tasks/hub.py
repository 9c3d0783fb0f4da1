"""Rows from the Hugging Face hub, or from its cache on this machine: memory-mapped, only the chosen rows become objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isoviz.errors import DataError
from isoviz.tasks import files
from isoviz.tasks.protocol import TRAIN, VALIDATION, Task

if TYPE_CHECKING:
    import pandas as pd


def frames(task: Task, wanted: Mapping[str, str], picks: Mapping[str, files.Pick | None]) -> dict[str, pd.DataFrame]:
    """Raw rows of each split; `DataError` if the hub cannot be reached and this machine has no copy."""
    assert task.hub is not None
    name, configuration = task.hub
    import datasets

    try:
        loaded = datasets.load_dataset(name, configuration)
    except (
        OSError,
        ValueError,
    ) as error:  # ConnectionError and datasets' offline errors are OSErrors, a missing cache a ValueError
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"data: '{task.slug}' is not on this machine and the hub cannot be reached ({reason}); "
            "give a folder with train and validation files",
            field="data",
        ) from None
    found = {}
    for split, there in {TRAIN: TRAIN, VALIDATION: task.validation, **dict(task.extra)}.items():
        rows, pick = loaded[there], picks[split]
        heads = dict.fromkeys([*(place.split(".")[0] for place in wanted.values()), *files.OPTIONAL])
        rows = rows.select_columns([head for head in heads if head in rows.column_names])
        numbers = None if pick is None else pick(len(rows))
        frame = (rows if numbers is None else rows.select(numbers)).to_pandas()
        if numbers is not None:
            frame.index = numbers
        found[split] = files.columns_of(frame, wanted)
    return found
