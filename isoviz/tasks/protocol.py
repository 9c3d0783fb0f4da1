"""The declaration of a task: its columns, labels, metrics and the source of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from isoviz.errors import InputError, input_error
from isoviz.tasks.kinds import HEAD_KINDS as HEAD_KINDS
from isoviz.tasks.kinds import KINDS, HeadKind, Kind

if TYPE_CHECKING:
    import pandas as pd

OWN = "own"
"""The task of a person's own files. It is not in the catalogue: without its columns it is no task."""

TRAIN, VALIDATION = "train", "validation"
SPLITS = (TRAIN, VALIDATION)


class OwnTask(BaseModel):
    """How a person's own files become a task: which column is what. `isoviz.tasks.own.guess` fills it in from the files.

    A file with no validation beside it is split: `share` of its rows, at least one, are held out, rows with the same texts
    together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    text: str = Field(min_length=1, title="Text", description="Column of the text (of the question, for answers).")
    second: str | None = Field(
        None, min_length=1, title="Second text", description="Column of a second text; of the context, for answers."
    )
    third: str | None = Field(
        None,
        min_length=1,
        title="Negative",
        description="Column of texts that do not belong to the first, for embeddings.",
    )
    label: str | None = Field(
        None,
        min_length=1,
        title="Label",
        description="Column of what is predicted: class, number, answer, text, or how close two texts are. Without one, the texts of a "
        "row belong together.",
    )
    kind: HeadKind | None = Field(
        None, title="Kind", description="What is predicted; inferred from the labels if empty."
    )
    label_names: tuple[str, ...] = Field(
        (), title="Classes", description="The classes as they stand in the files, in the order of their codes."
    )
    share: float = Field(0.2, gt=0, lt=1, title="Held out", description="Share of rows kept for validation.")
    split_seed: int = Field(0, ge=0, le=2**31 - 1, title="Seed of the split", description="Which rows are held out.")

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """Build it, turning the first violation into an `InputError` with the field `own.NAME`."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise input_error(error, "own.") from None


@dataclass(frozen=True)
class Task:
    """One task of the catalogue, or one made of a person's own files.

    Attributes:
        slug: name in configurations and URLs.
        title, description: for people.
        kind: what sits on the encoder.
        columns: the text columns of `TaskData`: one or two (classification, regression), question and context (span), or
            source and target (seq2seq), in this order; of embeddings two that belong together, and one that does not.
        label_names: names of the classes, in the order of their codes; empty for the other kinds.
        metrics: names of the metrics reported, from `isoviz.tasks.metrics` (which knows their scale); runs are compared by the first.
        source, licence: where the data come from and on whose terms.
        cites: keys of its papers in `isoviz.bibliography`.
        hub: (dataset id, configuration) on the Hugging Face hub, if it has one.
        generated: True for tasks whose rows the project generated itself and ships (`isoviz.demo`): no file, no network.
        label: the files' column of labels or numbers; of answers in span tasks; not used in seq2seq tasks. "": texts
            that belong together have no score (embeddings).
        places: (column of `TaskData`, column in the files) where the two differ; `a.b` is field b of the nested column a.
        directions: "from-to" language codes that a translation task allows; the first is the default.
        extra: (name, split in the files) of validation splits beside the first, as MNLI's mismatched one.
        validation: the validation split's name in the files and on the hub.
        by_name: labels are looked up by their text only, so a number in a file is a name, not a code.
        rows: of generated tasks, the slug of the task whose rows these are, if not its own.
        scale: the lowest and the highest score of embeddings.
        guess: the simple guess that a result is held against (`isoviz.tasks.outcomes`), if it is not its kind's.
        own: how a person's own files are read, for the task `own`.
    """

    slug: str
    title: str
    description: str
    columns: tuple[str, ...]
    metrics: tuple[str, ...]
    source: str
    licence: str
    label_names: tuple[str, ...] = ()
    hub: tuple[str, str] | None = None
    generated: bool = False
    label: str = "label"
    kind: HeadKind = "classification"
    places: tuple[tuple[str, str], ...] = ()
    directions: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    validation: str = VALIDATION
    by_name: bool = False
    guess: str | None = None
    rows: str | None = None
    scale: tuple[float, float] | None = None
    own: OwnTask | None = None
    cites: tuple[str, ...] = ()

    @property
    def primary(self) -> str:
        """The metric by which runs are compared."""
        return self.metrics[0]

    @property
    def rules(self) -> Kind:
        """What all tasks of its kind have in common."""
        return KINDS[self.kind]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that an encoder reads as one text: the first alone of seq2seq and embedding tasks, else all text columns."""
        return self.columns[: self.rules.inputs]

    @property
    def simple_guess(self) -> str:
        """The name of the guess that a model must beat to have learned anything."""
        return self.guess or self.rules.guess

    @property
    def reference(self) -> str:
        """The column of a checked frame that predictions are compared with."""
        return self.rules.reference if self.label and self.rules.reference else self.columns[1]

    def wanted(self, direction: str | None = None) -> dict[str, str]:
        """Column of a raw frame → where it stands in the files, for texts and answers."""
        places = {column: column for column in self.columns} | dict(self.places)
        if self.directions:
            first, second = self.checked_direction(direction).split("-")
            places = {"source": f"translation.{first}", "target": f"translation.{second}"}
        return places | ({self.rules.answers: self.label} if self.rules.answers and self.label else {})

    def checked_direction(self, direction: str | None) -> str:
        """The direction of translation, the task's own if none is given; "" for tasks that have none.

        Raises:
            InputError: a direction that this task does not have.
        """
        if direction is None:
            return self.directions[0] if self.directions else ""
        if direction not in self.directions:
            allowed = f"allowed: {', '.join(self.directions)}" if self.directions else "it does not translate"
            raise InputError.at("direction", f"'{self.slug}' has no direction '{direction}' ({allowed})")
        return direction

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns that a file of this task must have, as people call them."""
        return tuple(
            dict.fromkeys(place.split(".")[0] if self.own is None else place for place in self.wanted().values())
        )


@dataclass(frozen=True)
class TaskData:
    """Checked rows of a task, and a fingerprint of their content.

    The text columns are str. `label` is int64 (classification) or float64 (regression). Span tasks have `answer_texts` and
    `answer_starts` instead, a list of str and a list of int (characters into the context) per row, and `id`. Of seq2seq tasks
    the second text column is the target.

    Attributes:
        extra: further validation splits by name (MNLI's `mismatched`), in the same form.
        revision: the data set's commit on the hub; None for other rows, or where the cache does not know it.
    """

    train: pd.DataFrame
    validation: pd.DataFrame
    fingerprint: str
    extra: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    revision: str | None = None


@dataclass(frozen=True)
class DataReport:
    """A report on task data, for a look before launching.

    Attributes:
        rows: rows per split.
        looked_at: rows per split that all the rest is about: all of them, or of a long split its first ones and a random choice.
        labels: label name → count, per split; empty for kinds without classes.
        preview: first rows per split.
        notes: things worth knowing that stop nothing (duplicate rows, overlap of the splits, ...).
    """

    rows: dict[str, int]
    looked_at: dict[str, int]
    labels: dict[str, dict[str, int]]
    preview: dict[str, list[dict[str, object]]]
    notes: tuple[str, ...] = field(default=())
