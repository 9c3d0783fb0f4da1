"""The bundled examples (recorded runs), and a store's runs together with them.

`factory/record_examples.py` records them. They are read-only: all writes go to the store.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from isoviz.demo import EXAMPLE, EXAMPLES
from isoviz.errors import StoreError
from isoviz.runs.database import SealedDatabase
from isoviz.runs.reading import Facets, RunReader
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store

SWITCH: Final = "ISOVIZ_EXAMPLES"
"""Environment variable: `off` hides the examples for all visitors."""
GROUP: Final = "Example: "
"""Prefix of their experiments' names."""
METHODS: Final = GROUP + "Nine methods on two tasks"
SWEEP: Final = GROUP + "λ × ζ sweep of I-STAR"
DATABASE: Final = "runs.db"
ABOUT: Final = "about.json"
"""File with date, machine and versions of the recording."""


class Examples(RunReader):
    """The recorded runs.

    Args:
        folder: folder of the database and the runs' files.
    """

    def __init__(self, folder: Path = EXAMPLES) -> None:
        super().__init__(SealedDatabase(folder / DATABASE))
        self.about: Mapping[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        self.experiments: tuple[str, ...] = tuple(self.about["experiments"])
        self.with_embeddings: frozenset[str] = frozenset(self.about["embeddings"])

    def facets(self) -> Facets:
        """Like a store's facets; experiments in display order, each baseline first."""
        places = {name: place for place, name in enumerate(self.experiments)}
        oldest_first = super().facets()[::-1]
        return sorted(oldest_first, key=lambda facet: places.get(facet.group or "", len(places)))

    def featured(self) -> RunRow:
        """The run shown first; all its arrays are bundled."""
        return self.get(self.about["embeddings"][-1])


def is_example(run_id: str) -> bool:
    """Whether an id has the form of an example's id; the run need not exist."""
    return run_id.startswith(EXAMPLE)


def switched_on() -> bool:
    """Whether the operator shows the examples."""
    return os.environ.get(SWITCH, "on").strip().lower() not in ("off", "0", "false", "no")


@functools.cache
def _open() -> Examples:
    return Examples()


def opened() -> Examples | None:
    """The examples, opened once per process; None if they are switched off."""
    return _open() if switched_on() else None


class Library(RunReader):
    """Read access to a store's runs and the examples.

    Ids may refer to either. Lists contain only the store's runs, unless they name an experiment of the examples: the two come from
    different machines and versions, so they are never mixed implicitly.

    Args:
        own: the store.
        examples: None if hidden or unavailable.
    """

    def __init__(self, own: Store, examples: Examples | None = None) -> None:
        super().__init__(own._database)
        self.own = own
        self.examples = examples

    @property
    def key(self) -> str:
        """Equal for libraries of the same store and examples."""
        return f"{self.own.url} {self.examples or ''}"

    def with_run(self, run_id: str) -> RunReader:
        """The reader of a run: store or examples. Raises `StoreError` for a hidden example."""
        if not is_example(run_id):
            return self.own
        if self.examples is None:
            raise StoreError(f"run '{run_id}' is an example, and examples are hidden", field="id")
        return self.examples

    def facets(self) -> Facets:
        """Facets of the store, then of the examples."""
        return [*super().facets(), *(self.examples.facets() if self.examples else ())]

    def _reading(self, *, run_id: str = "", group: str | None = None) -> AbstractContextManager[Connection]:
        examples = self.examples
        if examples is not None and group in examples.experiments:
            return examples._reading()
        return self.with_run(run_id)._reading()

    def path_of(self, run_id: str) -> Path:
        """The folder without checking that the run exists."""
        return self.with_run(run_id).folder / "runs" / run_id
