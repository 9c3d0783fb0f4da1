"""The model and data that a run started from, stored beside it, so that a resumed run continues with the same or reports a change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.errors import DataError, ModelError

if TYPE_CHECKING:
    from isoviz.models.sources import ModelSource

FILE = "origin.json"
"""Below the run's folder."""


@dataclass(frozen=True)
class Origin:
    """Of the run's first attempt that came as far as its first step.

    Attributes:
        model: fingerprint of its files.
        revision: its commit, if it came from the hub.
        data: fingerprint of the rows.
        generation: how it writes texts, which the training rows decide (`Head.generation`); empty if it writes none.
    """

    model: str
    revision: str | None
    data: str
    generation: dict[str, int | None] = field(default_factory=dict)

    def check(self, source: ModelSource, data: str) -> None:
        """Whether what was found now is what the run began with.

        Raises:
            ModelError, DataError: it is not.
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


def keep(run_dir: Path, origin: Origin) -> None:
    """Write it, complete or not at all."""
    run_dir.mkdir(parents=True, exist_ok=True)
    partial = run_dir / f".{FILE}.partial"
    partial.write_text(json.dumps(asdict(origin)), encoding="utf-8")
    partial.replace(run_dir / FILE)


def find(run_dir: Path) -> Origin | None:
    """The origin of a run; None for a run that never got there, or that is older than this record."""
    try:
        return Origin(**json.loads((run_dir / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
