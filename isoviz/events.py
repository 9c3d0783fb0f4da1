"""What a run reports while it lives: a closed set of small, append-only facts.

`training` emits them, the store keeps them in order, tables and live charts fold them. A reader that folds steps must drop
what lies beyond `Resumed.step` when it meets a `Resumed`, because a resumed run walks those steps again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from isoviz.metrics.record import Measurement, upgraded_measured

Status = Literal["queued", "running", "finished", "stopped", "failed", "diverged", "lost"]
"""queued → running → one of the endings; `lost` = the worker vanished (killed, crashed, silent) without an ending of its own."""

ENDINGS: frozenset[str] = frozenset({"finished", "stopped", "failed", "diverged", "lost"})
RESUMABLE: frozenset[str] = frozenset({"stopped", "failed", "lost"})


Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""A number that is written as null where it is not finite."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Entered(_Event):
    """The run entered a phase that a person may have to wait for."""

    kind: Literal["entered"] = "entered"
    phase: Literal["loading", "tokenising", "measuring", "training", "evaluating", "saving"]
    detail: str = ""


class Started(_Event):
    """Everything is loaded; training begins (or goes on) now.

    The revisions are commits on the hub, of what came from there. `signatures` says of each metric that depends on settings
    (BLEU, chrF, ROUGE) what exactly is computed. `trainable_parameters` is None in runs of earlier versions, which trained all.
    `notes` are sentences on the rows that a reader of the scores should know.
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
    """Training goes on from the checkpoint after optimiser step `step`; later facts of an earlier attempt are void.

    `warning` says which newer checkpoints were damaged.
    """

    kind: Literal["resumed"] = "resumed"
    step: int
    epoch: int
    warning: str = ""


class Stepped(_Event):
    """One optimiser step (not every step is reported). `losses` holds `total`, `task` and each penalty's unweighted value.

    `step_seconds` is the mean over the steps of this attempt; None in a second stage, and in runs of before it was kept.
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

    `collapsed` says in words why the predictions are constant or no better than chance (`isoviz.tasks.outcomes.collapse`); None where
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
    `train_seconds` (optimiser steps), `evaluate_seconds` (validation rows read and scored), `measure_seconds` (what isotropy takes
    beyond that); empty in runs of before they were kept.
    """

    kind: Literal["measured"] = "measured"
    step: int
    epoch: int
    isotropy: Measurement
    arrays: str
    timing: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _upgraded(cls, data: Any) -> Any:
        return data if not isinstance(data, Mapping) or "isotropy" in data else upgraded_measured(data)


class Checkpointed(_Event):
    """A checkpoint lies in the run's folder, complete."""

    kind: Literal["checkpointed"] = "checkpointed"
    step: int
    epoch: int
    path: str


class Weights(_Event):
    """The model that a finished run keeps: after how many epochs and optimiser steps, and where (relative to its folder)."""

    epoch: int
    step: int
    path: str


class Finished(_Event):
    """The run ended as planned.

    `isotropy` is that of the reported epoch, and so is `collapsed` (`Evaluated`). `weights` is None where it is not known: before
    it was recorded, runs kept their last epoch's. `random_weights` says which encoder weights the model's checkpoint lacked; every
    number of such a run is partly of a random encoder.
    """

    kind: Literal["finished"] = "finished"
    metrics: dict[str, float | None]
    isotropy: Measurement
    timing: dict[str, float | None]
    weights: Weights | None = None
    collapsed: str | None = None
    random_weights: str = ""


class Stopped(_Event):
    """The run was asked to stop and did. `step` is that of its last checkpoint."""

    kind: Literal["stopped"] = "stopped"
    step: int
    forced: bool = False
    advice: str = "Resume continues from the last checkpoint and gives the uninterrupted run's numbers."


class Failed(_Event):
    """An exception ended the run; the traceback is in the run's log."""

    kind: Literal["failed"] = "failed"
    error: str
    message: str
    advice: str


class Diverged(_Event):
    """A loss term became non-finite; what was measured before is kept."""

    kind: Literal["diverged"] = "diverged"
    term: str
    step: int
    message: str
    advice: str


class Lost(_Event):
    """The worker vanished without a word (written by the process that noticed)."""

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
    """The event that `event.model_dump(mode="json")` came from, also of an older version; `time`, which the store adds, is left
    out."""
    return _ADAPTER.validate_python({name: value for name, value in data.items() if name != "time"})
