"""What a task is: its columns, labels, metrics and where its rows come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Task:
    """One task of the catalogue.

    Attributes:
        slug: name in configurations and URLs.
        title, description: for people.
        columns: the text columns, one or two.
        label_names: names of the classes, in the order of their codes.
        metrics: names of the metrics reported, from `isoviz.tasks.metrics`.
        primary: the metric by which runs are compared.
        source, licence: where the data come from and on whose terms.
        hub: (dataset id, configuration) on the Hugging Face hub, if it has one.
        generated: True for tasks that the project generates itself (no file, no network).
    """

    slug: str
    title: str
    description: str
    columns: tuple[str, ...]
    label_names: tuple[str, ...]
    metrics: tuple[str, ...]
    primary: str
    source: str
    licence: str
    hub: tuple[str, str] | None = None
    generated: bool = False
    label: str = "label"


@dataclass(frozen=True)
class TaskData:
    """Checked rows of a task: text columns as str, `label` as int64; fingerprint of their content."""

    train: pd.DataFrame
    validation: pd.DataFrame
    fingerprint: str


@dataclass(frozen=True)
class DataReport:
    """What a person should see of task data before launching.

    Attributes:
        rows: rows per split.
        labels: label name → count, per split.
        preview: first rows per split.
        notes: things worth knowing that stop nothing (duplicate rows, overlap of the splits, ...).
    """

    rows: dict[str, int]
    labels: dict[str, dict[str, int]]
    preview: dict[str, list[dict[str, object]]]
    notes: tuple[str, ...] = field(default=())
