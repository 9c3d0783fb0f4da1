"""The examples: recorded runs that ship with the package, and a store's runs together with them.

`factory/record_examples.py` makes them. They are read-only: everything that writes goes to the store alone.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from isoviz.demo import EXAMPLE, EXAMPLES
from isoviz.errors import StoreError
from isoviz.events import Event
from isoviz.runs import summaries as _summaries
from isoviz.runs.database import SealedDatabase
from isoviz.runs.reading import EventRows, EventsOf, Facets, RunReader, RunRows, Summaries
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from isoviz.runs.summaries import RunSummary

E = TypeVar("E", bound=Event)

SWITCH: Final = "ISOVIZ_EXAMPLES"
"""Environment variable: `off` leaves the examples out for everyone."""
GROUP: Final = "Example: "
"""How the names of their experiments begin."""
METHODS: Final = GROUP + "Nine methods on two tasks"
SWEEP: Final = GROUP + "λ × ζ sweep of I-STAR"
DATABASE: Final = "runs.db"
ABOUT: Final = "about.json"
"""When, where and with what they were recorded."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_opened: dict[Path, Examples | None] = {}


class Examples(RunReader):
    """The recorded runs.

    Args:
        folder: of the database and the runs' files.

    Raises:
        StoreError: they are missing or damaged.
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
        """As those of a store; experiments in the order in which they are offered, the baseline of each first."""
        places = {name: place for place, name in enumerate(self.experiments)}
        oldest_first = super().facets()[::-1]
        return sorted(oldest_first, key=lambda facet: places.get(facet.group or "", len(places)))

    def featured(self) -> RunRow:
        """The run that is shown first: every array of it ships."""
        return self.get(self.about["embeddings"][-1])


def is_example(run_id: str) -> bool:
    """Whether an id is that of an example; there need not be such a run."""
    return run_id.startswith(EXAMPLE)


def switched_on() -> bool:
    """Whether the operator lets visitors see examples."""
    return os.environ.get(SWITCH, "on").strip().lower() not in ("off", "0", "false", "no")


def opened(folder: Path = EXAMPLES) -> Examples | None:
    """The examples, opened once per process; None if they are switched off, missing or damaged, which the log says."""
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
    """A store's runs and the examples, to read from.

    A run is found by its id wherever it is. Lists are of the store's runs alone, unless they name an experiment of the examples: the two
    come from different machines and versions, so nothing mixes them unasked.

    Args:
        own: the store.
        examples: None where they are hidden or there are none.
    """

    def __init__(self, own: Store, examples: Examples | None = None) -> None:
        self.own = own
        self.examples = examples
        self.folder = own.folder

    def __str__(self) -> str:
        return str(self.own)

    @property
    def key(self) -> str:
        """Equal for libraries of the same runs, whatever has become of these."""
        return f"{self.own.url} {self.examples or ''}"

    def with_run(self, run_id: str) -> RunReader:
        """Where a run is. Raises `StoreError` for an example while they are hidden."""
        if not is_example(run_id):
            return self.own
        if self.examples is None:
            raise StoreError(f"run '{run_id}' is an example, and examples are hidden", field="id")
        return self.examples

    def with_group(self, group: str | None) -> RunReader:
        """Where an experiment is; None: all of the store's runs."""
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
        kinds: Sequence[str] = _summaries.KINDS,
    ) -> Summaries:
        """See `RunReader.summaries`."""
        where = self.with_group(group)
        return where.summaries(status=status, group=group, model=model, task=task, method=method, kinds=kinds)

    def summary(self, run_id: str) -> RunSummary:
        """See `RunReader.summary`."""
        return self.with_run(run_id).summary(run_id)

    def revision(self) -> str:
        """Another one whenever something changed that `summaries` or `facets` shows."""
        return self.own.revision()

    def facets(self) -> Facets:
        """Those of the store, then those of the examples."""
        return [*self.own.facets(), *(self.examples.facets() if self.examples else ())]

    def counts(self) -> dict[str, int]:
        """Of the store's runs: see `RunReader.counts`."""
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
