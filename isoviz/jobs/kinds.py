"""A kind of job: what it does, how urgent it is, what it may use at once, and how its results are kept."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from numpy.typing import NDArray

from isoviz.jobs.progress import ProgressFile

if TYPE_CHECKING:
    from isoviz.jobs.results import ResultStore

QUEUED, PERSON = 0, 1
"""Priorities: a job that no one is waiting for at a screen, and one that someone is."""

GIB: Final = 2**30


@dataclass(frozen=True)
class Lane:
    """Jobs that share what they need most, whatever their kind.

    Attributes:
        name: the same for all kinds that use it.
        cores: that one of them fills; None: only one at a time, however many cores there are.
    """

    name: str
    cores: int | None = None

    def at_once(self) -> int:
        """How many processes it may have on this machine: a class that asks at once must not bring it down."""
        return 1 if self.cores is None else max(1, (os.cpu_count() or 1) // self.cores)


ENCODERS: Final = Lane("encoders", cores=4)
"""Everything that reads many rows with an encoder: so many of them are in memory and computing at a time."""


class Recent:
    """The last few of something that is slow to make."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """The object of this key, made if missing; the least recently used one is dropped first."""
        if key not in self._items:
            while len(self._items) >= self._most:
                self._items.popitem(last=False)
            self._items[key] = make()
        self._items.move_to_end(key)
        return self._items[key]


@dataclass
class Job:
    """A job as the function sees it that does its work.

    Attributes:
        kind: of the job.
        key: under which it was requested.
        folder: its own, gone when the work is done.
        request: as JSON.
        report: takes `done`, `total` and what is being done.
        memory: what stays from one job of this process to the next, such as a loaded model.
        published: the key under which it left its result; at first `key`.
    """

    kind: JobKind
    key: str
    folder: Path
    request: Mapping[str, Any]
    report: ProgressFile
    memory: Recent
    published: str = field(init=False)

    def __post_init__(self) -> None:
        self.published = self.key

    def inputs(self) -> dict[str, NDArray[Any]]:
        """The arrays that came with the request."""
        if not (self.folder / INPUTS).exists():
            return {}
        from safetensors.numpy import load_file

        return load_file(self.folder / INPUTS)

    def publish(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], key: str | None = None) -> None:
        """Give the result its place; facts that list something under `pending` are published again later, without it.

        Args:
            key: if it differs from the requested one.
        """
        self.published = key or self.key
        self.kind.results.publish(self.published, facts, arrays)


INPUTS: Final = "inputs.safetensors"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of background job, run in separate processes; declared once, in its room.

    Attributes:
        name: unique.
        priority: `PERSON` or `QUEUED`; the higher goes first, then who asked first.
        prepare: what a spare for it does before it has an order, as `MODULE:FUNCTION`; empty: it needs none.
    """

    name: str
    priority: int
    prepare: str = ""


@dataclass(frozen=True, kw_only=True)
class JobKind(Kind):
    """A kind of job with results under keys of their content.

    Attributes:
        room: the module that declares it (`__name__`), imported by the process that works on it.
        work: does one job and publishes its result; an `IsoVizError` is shown in its own words.
        results: where those are kept, and how many.
        lane: what it shares with other kinds.
        memory: bytes that must be free for another process to start beside others.
        warm_seconds: for which the process waits for another job after the last one; it goes sooner where memory is short.
        remembers: how many models or the like stay in its memory from one job to the next.
        memory_field, memory_advice: the field and what to do, for a job that ran out of memory.
    """

    room: str
    work: Callable[[Job], None]
    results: ResultStore
    lane: Lane
    priority: int = PERSON
    memory: int = GIB
    warm_seconds: float = 0.0
    remembers: int = 1
    memory_field: str | None = None
    memory_advice: str = "Close other programs that use memory."

    def __post_init__(self) -> None:
        KINDS[self.name] = self


KINDS: dict[str, JobKind] = {}
"""Every kind whose room has been imported, by name."""
