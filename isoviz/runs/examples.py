"""The bundled examples (recorded runs), and a store's runs together with them.

`factory/record_examples.py` records them. They are read-only: all writes go to the store.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from isoviz.demo import EXAMPLE, EXAMPLES
from isoviz.errors import StoreError
from isoviz.events import Event
from isoviz.runs.database import SealedDatabase
from isoviz.runs.reading import EventRows, EventsOf, Facets, RunReader, RunRows, Summaries
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from isoviz.runs.summaries import RunSummary

E = TypeVar("E", bound=Event)

SWITCH: Final = "ISOVIZ_EXAMPLES"
"""Environment variable: `off` hides the examples for all visitors."""
GROUP: Final = "Example: "
"""Prefix of their experiments' names."""
METHODS: Final = GROUP + "Nine methods on two tasks"
SWEEP: Final = GROUP + "λ × ζ sweep of I-STAR"
DATABASE: Final = "runs.db"
ABOUT: Final = "about.json"
"""File with date, machine and versions of the recording."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_opened: dict[Path, Examples | None] = {}


class Examples(RunReader):
    """The recorded runs.

    Args:
        folder: folder of the database and the runs' files.

    Raises:
        StoreError: the examples are missing or damaged.
    """

    def __init__(self, folder: Path = EXAMPLES) -> None:
        super().__init__(SealedDatabase(folder / DATABASE))
        try:
            self.about: Mapping[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            self.experiments: tuple[str, ...] = tuple(self.about["experiments"])
            self.with_embeddings: frozenset[str] = frozenset(self.about["embeddings"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"cannot read {folder / ABOUT}: {error!r}") from error

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


def opened(folder: Path = EXAMPLES) -> Examples | None:
    """The examples, opened once per process; None if they are switched off, missing or damaged (logged)."""
    if not switched_on():
        return None
    with _lock:
        if folder not in _opened:
            try:
                _opened[folder] = Examples(folder)
            except StoreError as error:
                _log.warning("The examples are left out: %s", error)
                _opened[folder] = None
        return _opened[folder]


class Library:
    """Read access to a store's runs and the examples.

    Ids may refer to either. Lists contain only the store's runs, unless they name an experiment of the examples: the two come from
    different machines and versions, so they are never mixed implicitly.

    Args:
        own: the store.
        examples: None if hidden or unavailable.
    """

    def __init__(self, own: Store, examples: Examples | None = None) -> None:
        self.own = own
        self.examples = examples
        self.folder = own.folder

    def __str__(self) -> str:
        return str(self.own)

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

    def with_group(self, group: str | None) -> RunReader:
        """The reader of an experiment; None: the store."""
        examples = self.examples
        return examples if examples is not None and group in examples.experiments else self.own

    def get(self, run_id: str) -> RunRow:
        """See `RunReader.get`."""
        return self.with_run(run_id).get(run_id)

    def list(
        self,
        *,
        status: str | Iterable[str] | None = None,
        group: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        order: Literal["newest", "oldest", "queue"] = "newest",
    ) -> RunRows:
        """See `RunReader.list`."""
        return self.with_group(group).list(status=status, group=group, limit=limit, offset=offset, order=order)

    def summaries(
        self,
        *,
        status: str | Iterable[str] | None = None,
        group: str | None = None,
        model: Collection[str] = (),
        task: Collection[str] = (),
        method: Collection[str] = (),
    ) -> Summaries:
        """See `RunReader.summaries`."""
        reader = self.with_group(group)
        return reader.summaries(status=status, group=group, model=model, task=task, method=method)

    def summary(self, run_id: str) -> RunSummary:
        """See `RunReader.summary`."""
        return self.with_run(run_id).summary(run_id)

    def revision(self) -> str:
        """A value that changes whenever the results of `summaries` or `facets` change."""
        return self.own.revision()

    def facets(self) -> Facets:
        """Facets of the store, then of the examples."""
        return [*self.own.facets(), *(self.examples.facets() if self.examples else ())]

    def counts(self) -> dict[str, int]:
        """Counts of the store's runs, see `RunReader.counts`."""
        return self.own.counts()

    def events(self, run_id: str, after: int = 0, limit: int = 5000) -> EventRows:
        """See `RunReader.events`."""
        return self.with_run(run_id).events(run_id, after, limit)

    def events_of_kind(self, run_id: str, kind: type[E], limit: int | None = None) -> EventsOf[E]:
        """See `RunReader.events_of_kind`."""
        return self.with_run(run_id).events_of_kind(run_id, kind, limit)

    def newest_of_kind(self, run_id: str, kind: type[E]) -> tuple[float, E] | None:
        """See `RunReader.newest_of_kind`."""
        return self.with_run(run_id).newest_of_kind(run_id, kind)

    def folder_of(self, run_id: str) -> Path:
        """See `RunReader.folder_of`."""
        return self.with_run(run_id).folder_of(run_id)

    def path_of(self, run_id: str) -> Path:
        """See `RunReader.path_of`."""
        return self.with_run(run_id).path_of(run_id)

    def disk_use(self, run_id: str) -> int:
        """See `RunReader.disk_use`."""
        return self.with_run(run_id).disk_use(run_id)
