"""The events that a run reports: a closed set of small, append-only facts. `training` emits them, the store keeps them in
order, and tables and live charts fold them. A reader that folds steps must discard the steps after `Resumed.step` on a
`Resumed` event, because a resumed run repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from isoviz.metrics.record import Measurement

Status = Literal["queued", "running", "finished", "stopped", "failed", "diverged", "lost"]
"""queued → running → one of the endings; `lost` means that the worker vanished (killed, crashed or silent) without reporting an
ending."""

ENDINGS: frozenset[str] = frozenset({"finished", "stopped", "failed", "diverged", "lost"})
RESUMABLE: frozenset[str] = frozenset({"stopped", "failed", "lost"})


Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""A number that is written as null if it is not finite."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Entered(_Event):
    """The run entered a phase that may take a while."""

    kind: Literal["entered"] = "entered"
    phase: Literal["loading", "tokenising", "measuring", "training", "evaluating", "saving"]
    detail: str = ""


class Started(_Event):
    """Everything is loaded; training starts or continues now.

    The revisions are hub commits, for models and data from the hub. `signatures` gives the exact settings of metrics that
    depend on them (BLEU, chrF, ROUGE). `trainable_parameters` is None in runs of earlier versions, which trained all
    parameters. `notes` are caveats on the rows, for readers of the scores.
    """

    kind: Literal["started"] = "started"
    device: str
    precision: str
    threads: int
    total_steps: int
    steps_per_epoch: int
    train_rows: int
    eval_rows: int
    parameters: int
    trainable_parameters: int | None = None
    first_step: int = 0
    startup_seconds: float
    data_fingerprint: str
    model_fingerprint: str
    model_revision: str | None = None
    data_revision: str | None = None
    versions: dict[str, str]
    signatures: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    baselines: dict[str, float | None] = Field(default_factory=dict)


class Resumed(_Event):
    """Training continues from the checkpoint after optimiser step `step`; later events of an earlier attempt are void.
    `warning` lists damaged newer checkpoints and damaged arrays of measured epochs.
    """

    kind: Literal["resumed"] = "resumed"
    step: int
    epoch: int
    warning: str = ""


class Stepped(_Event):
    """One optimiser step (not every step is reported). `losses` holds `total`, `task` and the method's terms as they
    enter the total.

    `step_seconds` is the mean over the steps of this attempt; None in a second stage and in runs recorded before this field
    existed.
    """

    kind: Literal["stepped"] = "stepped"
    step: int
    epoch: float
    losses: dict[str, Number]
    learning_rate: Number
    samples_per_second: Number
    eta_seconds: Number
    step_seconds: float | None = None


class Evaluated(_Event):
    """The task's own metrics on the validation split. An undefined metric is None.

    `collapsed` describes why the predictions are constant or no better than chance (`isoviz.tasks.outcomes.collapse`); None if
    they are neither.
    """

    kind: Literal["evaluated"] = "evaluated"
    step: int
    epoch: int
    loss: Number
    metrics: dict[str, float | None]
    primary: str
    collapsed: str | None = None


class Measured(_Event):
    """Isotropy of the fixed probe set after `epoch` epochs (0 = before the first step).

    `isoscore_star` is always that of all layers' tokens with ζ = 0.2. `arrays` names the artifact file (relative to the
    run's folder) with `abs_correlation`, `order`, `std`, `ev` of the head cloud. `timing` are seconds of the run so far, by name:
    `train_seconds` (optimiser steps), `evaluate_seconds` (validation rows read and scored), `measure_seconds` (the additional
    time for isotropy).
    """

    kind: Literal["measured"] = "measured"
    step: int
    epoch: int
    isotropy: Measurement
    arrays: str
    timing: dict[str, float] = Field(default_factory=dict)


class Checkpointed(_Event):
    """A complete checkpoint is in the run's folder."""

    kind: Literal["checkpointed"] = "checkpointed"
    step: int
    epoch: int
    path: str


class Weights(_Event):
    """The model that a finished run keeps: its number of epochs and optimiser steps, and its path relative to the run's
    folder."""

    epoch: int
    step: int
    path: str


class Finished(_Event):
    """The run ended as planned.

    `isotropy` and `collapsed` (see `Evaluated`) belong to the reported epoch. `random_weights` lists encoder weights missing
    from the model's checkpoint; every number of such a run comes from a partly random encoder.
    """

    kind: Literal["finished"] = "finished"
    metrics: dict[str, float | None]
    isotropy: Measurement
    timing: dict[str, float | None]
    weights: Weights | None = None
    collapsed: str | None = None
    random_weights: str = ""


class Stopped(_Event):
    """The run stopped on request. `step` is that of its last checkpoint."""

    kind: Literal["stopped"] = "stopped"
    step: int
    forced: bool = False
    advice: str = "Resume continues from the last checkpoint and reproduces the uninterrupted run's numbers."


class Failed(_Event):
    """An exception ended the run; the traceback is in the run's log."""

    kind: Literal["failed"] = "failed"
    error: str
    message: str
    advice: str


class Diverged(_Event):
    """A loss term became non-finite; earlier measurements are kept."""

    kind: Literal["diverged"] = "diverged"
    term: str
    step: int
    message: str
    advice: str


class Lost(_Event):
    """The worker vanished without reporting an ending. The process that detects this writes the event."""

    kind: Literal["lost"] = "lost"
    message: str
    advice: str


Event = (
    Entered
    | Started
    | Resumed
    | Stepped
    | Evaluated
    | Measured
    | Checkpointed
    | Finished
    | Stopped
    | Failed
    | Diverged
    | Lost
)

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def parse_event(data: Mapping[str, object]) -> Event:
    """Restore an event from `event.model_dump(mode="json")`; ignores `time`, which the store adds."""
    return _ADAPTER.validate_python({name: value for name, value in data.items() if name != "time"})
