"""Kinds of jobs: their work, priority, resources and results."""

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
"""Priorities: a job in the background, and one that a user is waiting for."""

GIB: Final = 2**30


@dataclass(frozen=True)
class Lane:
    """Jobs of any kind that share a resource.

    Attributes:
        name: name of the lane, the same for all its kinds.
        cores: cores used by one job; None: one job at a time, on any number of cores.
    """

    name: str
    cores: int | None = None

    def capacity(self) -> int:
        """Most processes on this machine, so that a class that starts jobs together cannot overload it."""
        return 1 if self.cores is None else max(1, (os.cpu_count() or 1) // self.cores)


ENCODERS: Final = Lane("encoders", cores=4)
"""Lane of all jobs that read many rows with an encoder."""


class Recent:
    """A small cache of objects that are slow to create."""

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
    """A job, as passed to its work function.

    Attributes:
        kind: kind of the job.
        key: requested key.
        folder: the job's folder, removed after the work.
        request: the request as JSON.
        report: called with `done`, `total` and the current activity.
        memory: cache that the jobs of this process share, for example for a loaded model.
        published: key of the published result; initially `key`.
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
        """Publish the result. Facts with `pending` parts are published again later without them.

        Args:
            key: the key, if different from the requested one.
        """
        self.published = key or self.key
        self.kind.results.publish(self.published, facts, arrays)


INPUTS: Final = "inputs.safetensors"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of background job, run in separate processes, declared once in its module.

    Attributes:
        name: unique name.
        priority: `PERSON` or `QUEUED`; higher priorities start first, then earlier requests.
        prepare: preparation of a spare for this kind, as `MODULE:FUNCTION`; empty: no spare.
    """

    name: str
    priority: int
    prepare: str = ""


@dataclass(frozen=True, kw_only=True)
class JobKind(Kind):
    """A kind of job with results under keys of their content.

    Attributes:
        room: the module that declares it (`__name__`), imported by the worker process.
        work: does one job and publishes its result; the text of an `IsoVizError` is shown to the user.
        results: the store of its results.
        lane: the lane it shares with other kinds.
        memory: free bytes required to start another process next to others.
        warm_seconds: seconds that the process waits for another job; less if memory is short.
        remembers: number of objects, such as models, cached between jobs.
        memory_field, memory_advice: field and advice for a job that ran out of memory.
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
"""All kinds declared in imported modules, by name."""
