"""A task's results for publication: the table as LaTeX, with caption and notes.

No Streamlit here.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dashboard.shared import downloads, measures, tables
from isoviz import tasks
from isoviz.formatting import decimals
from isoviz.metrics.protocol import Metric
from isoviz.runs.comparisons import Comparison, Part
from isoviz.runs.comparisons.wording import interval, number, probability
from isoviz.runs.naming import setting
from isoviz.studies import published
from isoviz.studies.published import Printed
from isoviz.tasks.metrics import METRICS

SIMPLE = {
    "majority": "Majority class",
    "mean": "Mean label",
    "bag_of_words": "Bag of words",
    "copied": "Source, copied",
    "word_by_word": "Word by word",
    "random_weights": "Random weights, trained",
}
"""Names of simple approaches in a published table; others keep their names."""
_SHARED_SETTINGS = ("epochs", "learning_rate", "batch_size", "schedule", "max_length", "precision")
"""Settings named in the caption if all rows share them."""


@dataclass(frozen=True)
class Published:
    """Content of one task's table.

    Attributes:
        summary: of `tables.summary`.
        metric: the task metric in `mean`.
        isotropy: the measures with a column.
        parts: the comparison with the baseline, one part per model; empty if there is none, with the reason in `why_none`.
        tests: how many comparisons the correction is for.
        simple: name of a simple approach → its score; only for the task's primary metric.
        rows: training and validation rows; each None if unknown or not the same for all runs.
        warnings: reasons not to compare these runs.
    """

    task: str
    metric: str
    summary: pd.DataFrame
    isotropy: Sequence[Metric]
    parts: Sequence[Part] = ()
    tests: int = 0
    why_none: str = ""
    simple: Mapping[str, float | None] = field(default_factory=dict)
    rows: tuple[int | None, int | None] = (None, None)
    warnings: Sequence[str] = ()

    @property
    def scale(self) -> float:
        """The metric's value of perfect predictions."""
        task_metric = METRICS.get(self.metric)
        return task_metric.highest if task_metric else 0.0

    def comparison(self, line: Mapping[str, Any]) -> Comparison | None:
        """The comparison of a row of the summary with the baseline."""
        label = " ".join(filter(None, (str(line["title"]), str(line["variant"]))))
        of_model = (comparison for part in self.parts if part.model == line["model"] for comparison in part.comparisons)
        return next((comparison for comparison in of_model if comparison.arm == label), None)

    @functools.cached_property
    def frame(self) -> pd.DataFrame:
        """The summary with `label`, and as text: `difference` from the baseline, its `p`, and the `published` numbers."""
        lines = _records(self.summary)
        compared = [self.comparison(line) for line in lines]
        p_values = [None if comparison is None else comparison.p_holm for comparison in compared]
        return self.summary.assign(
            label=tables.labels(self.summary),
            difference=[difference_text(comparison, self.scale) for comparison in compared],
            p=["" if p is None else probability(p) for p in p_values],
            published=[published_text(line) for line in lines],
        )

    def lines(self) -> list[dict[str, Any]]:
        """The rows of the frame."""
        return _records(self.frame)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in line.items()} for line in frame.to_dict("records")]


def printed_for(line: Mapping[str, Any]) -> tuple[Printed, ...]:
    """The published numbers for a row of `tables.summary`."""
    return published.beside(str(line["model"]), str(line["task"]), str(line["method"]), str(line["metric"]))


def published_text(line: Mapping[str, Any]) -> str:
    """The published numbers for a row as text, each with its table; usually empty."""
    return "; ".join(
        f"{printed_text(entry)} ({'' if entry.statistic in ('', 'mean') else f'{entry.statistic}; '}{entry.where})"
        for entry in printed_for(line)
    )


def printed_text(printed: Printed) -> str:
    """`0.708 ± 0.016`, on the scale of our runs; a dagger marks doubtful numbers."""
    value = printed.on_our_scale
    assert value is not None and printed.value
    spread = "" if printed.sd is None else f" ± {decimals(printed.sd * value / printed.value)}"
    return f"{decimals(value)}{spread}{' †' if printed.doubt else ''}"


# ------------------------------------------------------------------------------------------------------- text cells


def _columns(table: Published) -> dict[str, list[str]]:
    """Heading → cells, settings first, simple approaches below them. Empty columns are left out."""
    lines = table.lines()
    places = 2 if table.scale >= 100 else 3
    columns: dict[str, list[str]] = {
        "Model": [str(line["model"]) for line in lines],
        "Method": [" ".join(filter(None, (line["label"], line["settings"]))) for line in lines],
        metric_title(table.metric): [spread(line["mean"], line["sd"], places) for line in lines],
        "n": [str(line["n"]) for line in lines],
        "Difference [95 % interval]": [line["difference"] for line in lines],
        "p": [line["p"] for line in lines],
    }
    for metric in table.isotropy:
        columns[measures.with_cloud(metric)] = [
            spread(line[metric.slug], line[f"{metric.slug}_sd"], metric.decimals) for line in lines
        ]
    columns["Published"] = [line["published"] for line in lines]
    columns["Remarks"] = [str(line["remarks"] or "") for line in lines]
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    if len(set(columns["Model"])) == 1:
        del filled["Model"]
    for name, value in table.simple.items():
        if value is not None:
            for heading, cells in filled.items():
                row = {"Method": simple_title(name), metric_title(table.metric): decimals(value, places)}
                cells.append(row.get(heading, ""))
    return filled


def simple_title(name: str) -> str:
    """A simple approach as a published table calls it."""
    return SIMPLE.get(name, name.replace("_", " ").capitalize())


def metric_title(metric: str) -> str:
    """A task metric's heading."""
    return METRICS[metric].title if metric in METRICS else metric.replace("_", " ")


def spread(mean: float | None, sd: float | None, places: int = 3) -> str:
    """`0.812 ± 0.010`."""
    return decimals(mean, places) + ("" if sd is None or math.isnan(sd) else f" ± {decimals(sd, places)}")


def difference_text(comparison: Comparison | None, scale: float) -> str:
    """`−0.006 [−0.042, 0.030]`; empty for the baseline."""
    if comparison is None or comparison.difference is None:
        return ""
    return number(comparison.difference, scale=scale, sign=True) + interval((comparison.low, comparison.high), scale)


def caption(table: Published) -> str:
    """One sentence on the table's content, data and settings."""
    catalogued = tasks.catalogue().get(table.task)
    models = list(dict.fromkeys(table.summary["model"]))
    name = catalogued.title if catalogued else table.task
    of = f" of {models[0]}" if len(models) == 1 else ""
    train, validation = table.rows
    size = f" on {validation:,} validation rows" if validation else ""
    size += f" after training on {train:,}" if validation and train else ""
    return f"{name}: {metric_title(table.metric).lower() if table.metric != 'f1' else 'F1'}{of}{size}. {_seeds(table)}"


def _seeds(table: Published) -> str:
    counts = sorted({int(n) for n in table.summary["n"] if n})
    if not counts:
        return "No run has finished."
    if counts[-1] == 1:
        return "One seed each, so there is no spread."
    over = f"{counts[-1]}" if counts == counts[-1:] else "n"
    return f"Mean ± sample standard deviation over {over} seeds."


def notes(table: Published) -> list[str]:
    """Notes below the table: warnings, settings, tests and excluded runs."""
    lines = list(table.warnings)
    if settings := shared_settings(table.summary):
        lines.append(f"Settings: {settings}.")
    comparisons = [comparison for part in table.parts for comparison in part.comparisons]
    if any(comparison.difference is not None for comparison in comparisons):
        baselines = ", ".join(dict.fromkeys(comparison.baseline for comparison in comparisons))
        paired = "paired by seed" if all(comparison.paired for comparison in comparisons) else "between unpaired seeds"
        text = f"Differences are from {baselines}, {paired}."
        if names := dict.fromkeys(comparison.test for comparison in comparisons if comparison.p is not None):
            tests = " and ".join(names)
            correction = f", with Holm's correction for {table.tests} comparisons" if table.tests > 1 else ""
            text += f" Intervals are 95 %; p is from the {tests}{correction}."
        lines.append(text)
    elif table.why_none:
        lines.append(f"No differences: {table.why_none}")
    if any(entry.doubt for line in table.lines() for entry in printed_for(line)):
        lines.append("† The printed number is doubtful.")
    return lines


def shared_settings(summary: pd.DataFrame) -> str:
    """The training settings that all rows share, as text: `4 epochs, learning rate 0.0006, …`."""
    setups = [json.loads(setup) for setup in summary["setup"]]
    settings = []
    for name in _SHARED_SETTINGS:
        values = {json.dumps(setup.get(name)) for setup in setups}
        if len(values) == 1:
            value = setups[0].get(name)
            written = {"no": "float32"}.get(value, value) if name == "precision" else value
            settings.append(f"{name.replace('_', ' ')} {setting(written)}")
    return ", ".join(settings)


# ------------------------------------------------------------------------------------------------------- files


def latex(table: Published) -> str:
    """A complete `table` environment for booktabs: caption, label, simple approaches below a rule, notes below the table."""
    columns = _columns(table)
    simple = sum(value is not None for value in table.simple.values())
    headings = {name: downloads.latex_text(name) for name in columns}
    for metric in table.isotropy:
        cloud = downloads.latex_text(measures.cloud(metric))
        headings[measures.with_cloud(metric)] = f"{downloads.latex_heading(metric)} ({cloud})"
    return downloads.latex_table(
        {headings[name]: cells for name, cells in columns.items()},
        caption(table),
        "".join("l" if name in ("Model", "Method", "Published", "Remarks") else "r" for name in columns),
        label=downloads.file_name("tab:results", table.task, table.metric).replace("tab-results", "tab:results"),
        last=simple,
        notes=notes(table),
    )
