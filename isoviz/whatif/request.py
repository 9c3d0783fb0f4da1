"""Requests of What-if's background jobs, and the keys of their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import isoviz
from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.jobs.results import ResultStore
from isoviz.training.weights import FILE, fingerprint, newest

if TYPE_CHECKING:
    from isoviz.runs.rows import RunRow  # needs SQLAlchemy, which `isoviz transform` must not

FORMAT: Final = 2
"""Version of an encoding's files. Raise it when old results could no longer be read correctly."""
LAYER_FORMAT: Final = 3
"""The same for a layer's files."""

ROWS: Final = 5_000
"""Most rows read of each split."""

KINDS: Final = ("classification", "regression")
"""Task kinds whose output layer reads one vector per row, to which a chain can be applied."""


STORE: Final = ResultStore("whatif")
"""Cache of embeddings and trained layers."""


@dataclass(frozen=True)
class EncodingRequest:
    """One pass of a finished run's weights over its rows.

    Attributes:
        run: run id.
        config: `RunConfig` as JSON.
        checkpoint: the folder of the checkpoint.
        data_fingerprint: fingerprint of the run's rows; empty if unknown.
        rows: most rows of each split.
    """

    run: str
    config: Mapping[str, Any]
    checkpoint: str
    data_fingerprint: str = ""
    rows: int = ROWS

    def as_json(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    @property
    def key(self) -> str:
        """Thirty-two hex digits: equal for the same run, the same content of its checkpoint and the same rows."""
        checkpoint = fingerprint(Path(self.checkpoint))
        return _key(what="encoding", run=self.run, checkpoint=checkpoint, rows=self.rows, format=FORMAT)


@dataclass(frozen=True)
class LayerRequest:
    """An IsoLayer trained on cached vectors, after other transforms.

    Attributes:
        embeddings: the key of the vectors.
        cloud: `head` or `pooled`.
        before: the chain before it, as text.
        params: all parameters of the method.
    """

    embeddings: str
    cloud: str
    before: str
    params: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    @property
    def key(self) -> str:
        """Equal for equal content and settings."""
        return _key(what="layer", format=LAYER_FORMAT, **self.as_json())


def request_for(run: RunRow, folder: Path, data_fingerprint: str = "") -> EncodingRequest:
    """The request for a run with its files in `folder`.

    Raises:
        InputError: the run has not finished, its head does not read one vector per row, or its checkpoint is missing.
    """
    if run.status != "finished":
        raise InputError(f"run: '{run.id}' is {run.status}; What-if needs a finished run", field="run")
    refuse_kind(run.config)
    checkpoint = newest(folder)
    if checkpoint is None or not (checkpoint / FILE).is_file():
        raise InputError(f"run: the checkpoint of '{run.id}' no longer exists; train it again", field="run")
    return EncodingRequest(run.id, run.config.model_dump(mode="json"), str(checkpoint), data_fingerprint)


def can_serve(config: RunConfig) -> bool:
    """Whether the task has an output layer that reads one vector per row."""
    try:
        refuse_kind(config)
    except InputError:
        return False
    return True


def refuse_kind(config: RunConfig) -> None:
    """Raise `InputError` for a task without an output layer that reads one vector per row."""
    task = tasks.get(config.task, config.own)
    if task.kind not in KINDS:
        raise InputError(
            f"run: '{config.task}' is a {task.kind} task; What-if works on {' and '.join(KINDS)}, where one vector per row "
            "feeds the head",
            field="run",
            advice="As the encoder of your own texts, choose run:ID." if task.kind == "embedding" else None,
        )


def _key(**content: Any) -> str:
    text = json.dumps({**content, "isoviz": isoviz.__version__}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
