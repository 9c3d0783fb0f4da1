"""A study's tables, its published and measured numbers, and a printed table in the paper's layout, as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pandas as pd

from isoviz import metrics, tasks
from isoviz.studies.published import Printed
from isoviz.studies.result import Published, Table
from isoviz.tasks.metrics import METRICS

_HEADINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lam": "λ",
        "zeta": "ζ",
        "average": "average",
        "minutes_per_epoch": "minutes per epoch",
        "relative_improvement_performance_pct": "performance, change in %",
        "relative_improvement_isoscore_pct": "IsoScore, change in %",
        "accuracy_mismatched": "Accuracy (mismatched)",
        "matthews": "Matthews",
        "pearson": "Pearson",
    }
)
"""Metric of a published number → heading, where the catalogues have none or a long one."""

_MARKS: Final = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ"

NUMBERS: Final = ("Printed", "Measured", "Difference")
DIFFERS: Final = "Differs from the paper"
"""Columns of `comparison`; the last one only if a number differs."""


def as_frame(table: Table) -> pd.DataFrame:
    """A table's rows; columns that mix words and numbers are text."""
    lines = table.lines()
    columns = {}
    for index, name in enumerate(table.header):
        cells = [row[index] for row in table.rows]
        is_text = [isinstance(cell, str) for cell in cells]
        columns[name] = [line[index] for line in lines] if any(is_text) and not all(is_text) else cells
    return pd.DataFrame(columns, columns=table.header)


def comparison(numbers: Sequence[Published]) -> pd.DataFrame | None:
    """Each published number, ours and the difference; None without published numbers."""
    if not numbers:
        return None
    lines = [(one.what, one.published, one.reproduced, one.where, one.differs) for one in numbers]
    frame = pd.DataFrame(lines, columns=["What", *NUMBERS[:2], "In the paper", DIFFERS]).astype({NUMBERS[1]: float})
    frame.insert(3, NUMBERS[2], frame[NUMBERS[1]] - frame[NUMBERS[0]])
    return frame if frame[DIFFERS].any() else frame.drop(columns=DIFFERS)


@dataclass(frozen=True)
class PrintedTable:
    """A printed table.

    Attributes:
        frame: one row per model and method, one column per task and metric, all text.
        doubts: the mark of each doubtful cell, and why it is doubtful.
        remarks: the paper's other notes on its numbers.
    """

    frame: pd.DataFrame
    doubts: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def as_printed(cells: Sequence[Printed]) -> PrintedTable:
    """The cells of one table in the order of print. Percentages and misprints stay as printed."""
    marks = {text: _MARKS[index] for index, text in enumerate(dict.fromkeys(c.doubt for c in cells if c.doubt))}
    several_metrics = len({(cell.task, cell.metric) for cell in cells}) > len({cell.metric for cell in cells})
    places: dict[str, int] = {}
    for cell in cells:
        column = heading(cell, several_metrics)
        decimals = 0 if cell.value is None else len(f"{cell.value:g}".partition(".")[2])
        places[column] = max(places.get(column, 0), decimals)
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for cell in cells:
        line = lines.setdefault((cell.model, cell.label), {"Model": cell.model, "Method": cell.label})
        column = heading(cell, several_metrics)
        line[column] = _text(cell, places[column]) + marks.get(cell.doubt, "")
    frame = pd.DataFrame(lines.values()).fillna("")
    for column in ("Model", "Method"):
        if frame[column].nunique() == 1:
            frame = frame.drop(columns=column)
    remarks = dict.fromkeys(cell.remark.replace("starred as", "* is") for cell in cells if cell.remark)
    return PrintedTable(frame, tuple((mark, text) for text, mark in marks.items()), tuple(remarks))


def heading(cell: Printed, with_task: bool) -> str:
    """Task and metric of a cell, in a few words."""
    metric = METRICS.get(cell.metric)
    measure = metrics.catalogue().get(cell.metric)
    title = _HEADINGS.get(cell.metric) or (metric.title if metric else measure.title if measure else cell.metric)
    if cell.metric.startswith("ev_"):
        title = f"EV_{cell.metric[3:]}"
    elif cell.metric in ("i1", "i2"):
        title = cell.metric.upper()
    if not cell.task:
        return "Average" if cell.metric == "average" else f"average {title}"
    task = tasks.catalogue().get(cell.task)
    return f"{task.title if task else cell.task}, {title}" if with_task else title


def _text(cell: Printed, places: int) -> str:
    """A cell with as many decimals as its column: printed tables keep trailing zeros."""
    if cell.value is None:
        return "not printed"
    value = f"{cell.value:.{places}f}".replace("-", "−")
    spread = "" if cell.sd is None else f" ± {cell.sd:g}"
    star = "*" if cell.remark.startswith("starred") else ""
    return f"{value}{spread}{star}"
