"""The model and data that a run started from, stored in its folder, so that a resumed run can detect changes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.errors import DataError, ModelError

if TYPE_CHECKING:
    from isoviz.models.sources import ModelSource

FILE = "origin.json"
"""File name in the run's folder."""


@dataclass(frozen=True)
class Origin:
    """Model and data of the run's first attempt that reached its first step.

    Attributes:
        model: fingerprint of the model's files.
        revision: the model's commit, if it came from the hub.
        data: fingerprint of the rows.
        generation: how it writes texts, which the training rows decide (`Head.generation`); empty if it writes none.
    """

    model: str
    revision: str | None
    data: str
    generation: dict[str, int | None] = field(default_factory=dict)

    def check(self, source: ModelSource, data: str) -> None:
        """Check that model and data have not changed.

        Raises:
            ModelError, DataError: they have changed.
        """
        advice = "Restore the original, or start a new run: a run cannot change its {} halfway."
        if source.fingerprint != self.model:
            raise ModelError(
                f"model: the files of '{source.name}' have changed since this run began (fingerprint {source.fingerprint}, "
                f"the run's was {self.model})",
                field="model",
                advice=advice.format("model"),
            )
        if data != self.data:
            raise DataError(
                f"data: the rows have changed since this run began (fingerprint {data}, the run's was {self.data})",
                field="data",
                advice=advice.format("data set"),
            )


def save(run_dir: Path, origin: Origin) -> None:
    """Write the origin, atomically."""
    run_dir.mkdir(parents=True, exist_ok=True)
    partial = run_dir / f".{FILE}.partial"
    partial.write_text(json.dumps(asdict(origin)), encoding="utf-8")
    partial.replace(run_dir / FILE)


def find(run_dir: Path) -> Origin | None:
    """The origin of a run; None if the run did not reach its first step, or is older than this record."""
    try:
        return Origin(**json.loads((run_dir / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
