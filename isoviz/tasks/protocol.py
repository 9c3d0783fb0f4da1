"""What a task is: its columns, labels, metrics and where its rows come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isoviz.models.families import HeadKind

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Task:
    """One task of the catalogue.

    Attributes:
        slug: name in configurations and URLs.
        title, description: for people.
        kind: what sits on the encoder.
        columns: the columns that are read as text: one or two (classification, regression), question and context (span), or
            source and target (seq2seq), in this order.
        label_names: names of the classes, in the order of their codes; empty for the other kinds.
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
    kind: HeadKind = "classification"


@dataclass(frozen=True)
class TaskData:
    """Checked rows of a task, and a fingerprint of their content.

    The text columns are str. `label` is int64 (classification) or float64 (regression). Span tasks have `answer_texts` and
    `answer_starts` instead, a list of str and a list of int (characters into the context) per row, and `id`. Of seq2seq tasks
    the second text column is the target.
    """

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
