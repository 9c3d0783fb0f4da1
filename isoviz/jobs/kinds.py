"""Kinds of jobs: their work, resources and results."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from numpy.typing import NDArray

if TYPE_CHECKING:
    from isoviz.jobs.results import ResultStore

GIB: Final = 2**30


@dataclass(frozen=True)
class Pool:
    """Jobs of any kind that share a resource.

    Attributes:
        name: name of the pool, the same for all its kinds.
        cores: cores used by one job; None: one job at a time, on any number of cores.
    """

    name: str
    cores: int | None = None

    def capacity(self) -> int:
        """Most processes on this machine, so that a class that starts jobs together cannot overload it."""
        return 1 if self.cores is None else max(1, (os.cpu_count() or 1) // self.cores)


ENCODERS: Final = Pool("encoders", cores=4)
"""Pool of all jobs that read many rows with an encoder."""


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


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of roughly equal duration; `text`: the current activity."""

    done: int = 0
    total: int = 1
    text: str = "starting"

    @property
    def fraction(self) -> float:
        """Within [0, 1]."""
        return min(1.0, max(0.0, self.done / self.total)) if self.total > 0 else 0.0


REPORT_SECONDS: Final = 0.5
"""Fewest seconds between two reports of progress."""


class Report:
    """Reports progress at most twice a second; progress never decreases.

    Args:
        send: called with `done`, `total` and the current activity.
    """

    def __init__(self, send: Callable[[int, int, str], None] = lambda done, total, text: None) -> None:
        self._send = send
        self._sent: float | None = None
        self._furthest = 0.0

    def __call__(self, done: int, total: int, text: str) -> None:
        """Report that `done` of `total` steps are finished."""
        now = time.monotonic()
        if self._sent is not None and now - self._sent < REPORT_SECONDS:
            return
        self._furthest = max(self._furthest, done / total if total > 0 else 0.0)
        self._send(round(self._furthest * total), total, text)
        self._sent = now


@dataclass
class Job:
    """A job, as passed to its work function.

    Attributes:
        kind: kind of the job.
        key: requested key.
        request: the request as JSON.
        report: called with `done`, `total` and the current activity.
        memory: cache that the jobs of this process share, for example for a loaded model.
        published: key of the published result; initially `key`.
    """

    kind: JobKind
    key: str
    request: Mapping[str, Any]
    report: Report
    memory: Recent
    published: str = field(init=False)

    def __post_init__(self) -> None:
        self.published = self.key

    def inputs(self) -> dict[str, NDArray[Any]]:
        """The arrays that came with the request."""
        file = self.kind.results.inputs_of(self.key)
        if not file.exists():
            return {}
        from safetensors.numpy import load_file

        return load_file(file)

    def publish(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], key: str | None = None) -> None:
        """Publish the result. Facts with `pending` parts are published again later without them.

        Args:
            key: the key, if different from the requested one.
        """
        self.published = key or self.key
        self.kind.results.publish(self.published, facts, arrays)


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of job with results under keys of their content, done in separate processes, declared once in its module.

    Attributes:
        name: unique name.
        room: the module that declares it (`__name__`), imported by the worker process.
        work: does one job and publishes its result; the text of an `IsoVizError` is shown to the user.
        results: the store of its results.
        pool: the pool it shares with other kinds.
        prepare: preparation of a worker for this kind, as `MODULE:FUNCTION`; empty: none.
        memory: free bytes required to start another process next to others.
        warm_seconds: seconds that the process waits for another job; less if memory is short.
        remembers: number of objects, such as models, cached between jobs.
        memory_field, memory_advice: field and advice for a job that ran out of memory.
    """

    name: str
    room: str
    work: Callable[[Job], None]
    results: ResultStore
    pool: Pool
    prepare: str = ""
    memory: int = GIB
    warm_seconds: float = 0.0
    remembers: int = 1
    memory_field: str | None = None
    memory_advice: str = "Close other programs that use memory."

    def __post_init__(self) -> None:
        KINDS[self.name] = self


KINDS: dict[str, JobKind] = {}
"""All kinds declared in imported modules, by name."""
