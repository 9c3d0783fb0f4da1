"""Service layer: pages, routes and commands change or start things only through it.

Reading needs no further permission: every visitor can see runs, their numbers and results. All writes are methods of `Service`, which
first check the visitor's permission.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from isoviz import allowed_paths, devices, vectors
from isoviz.allowed_paths import Roots
from isoviz.config import RunConfig
from isoviz.errors import AccessError, DataError, ModelError, StoreError
from isoviz.exploring import encoders, user_sets
from isoviz.exploring.jobs import VIEW
from isoviz.exploring.request import ViewRequest
from isoviz.jobs import guarded, queue
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState
from isoviz.models import sources
from isoviz.operations.access import uploads
from isoviz.operations.access.policy import READ_ONLY, UNRESTRICTED, Policy
from isoviz.operations.access.uploads import Allowance, Files
from isoviz.operations.access.visitors import OPERATOR, Role, Visitor
from isoviz.readouts.ruler import results as rulers
from isoviz.runs import examples
from isoviz.runs.examples import is_example
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from isoviz.runs.summaries import RunSummary
from isoviz.tables import stores
from isoviz.tasks.files import is_table
from isoviz.tasks.protocol import Task
from isoviz.vectors.intake import ImportRequest, SetSummary
from isoviz.whatif import engine as whatif

_SETTLED: Final = ("waiting", "running", "done")
_EXAMPLE: Final = AccessError(
    "This run is an example that ships with IsoViz and cannot be changed",
    advice="Run it again to get your own copy.",
)
OWN_VECTORS: Final = "isoviz.exploring.vector_view"
VECTOR_MODULES: Final = (*guarded.TABLES, "isoviz.vectors.intake", OWN_VECTORS)
"""Modules imported for reading a user's vectors and drawing the first figures."""
_counting = threading.Lock()
"""Held while a visitor's runs or jobs are counted and new ones created, so that two simultaneous clicks are counted in turn."""
_computing: Counter[str] = Counter()
"""Visitor → waiting and running computations outside the queue of jobs."""
_turn = threading.Lock()
"""Held by the running computation, because a model may fill the memory."""
_LOOK_SECONDS: Final = 0.1


class Service:
    """Actions of one visitor, with that visitor's permissions.

    Args:
        store: the store of runs.
        visitor: the visitor.
        policy: the operator's settings.

    Every method that writes raises `AccessError`, before any change, if the visitor lacks permission.
    """

    def __init__(self, store: Store, visitor: Visitor, policy: Policy) -> None:
        self._store = store
        self.visitor = visitor
        self.policy = policy

    # ------------------------------------------------------------------ permissions

    def refusal(self, run: RunRow | RunSummary | None = None) -> AccessError | None:
        """The reason why this visitor may not start or change anything, or not this run; None if allowed.

        Pages disable buttons accordingly; the methods below raise it.
        """
        if self.policy.read_only:
            return AccessError(
                "This server is read-only",
                advice=f"Its operator can change that ({READ_ONLY}).",
            )
        if not self.visitor.may(Role.RUNNER):
            return AccessError(
                "Your link only allows viewing",
                advice="To launch, change or compute something, ask the person who runs the server for a runner's link.",
            )
        if run is not None and is_example(run.id):
            return _EXAMPLE
        if run is not None and not self.visitor.may(Role.OPERATOR) and run.visitor != self.visitor.id:
            return AccessError(
                "This run belongs to someone else",
                advice="Only the person who launched it, or the operator, can stop, resume or change it.",
            )
        return None

    def require(self, run: RunRow | RunSummary | None = None) -> None:
        """Raise `refusal`, if any."""
        if (refused := self.refusal(run)) is not None:
            raise refused

    # ------------------------------------------------------------------ runs

    def launch(
        self,
        configs: Sequence[RunConfig],
        *,
        group: str | None = None,
        new: bool = False,
        name: str | None = None,
        claim: str | None = None,
    ) -> list[str]:
        """Queue all runs or none; arguments as for `isoviz.runs.store.Store.create`.

        Args:
            new: number the experiment's name if there is one of that name.
        """
        self.require()
        resolved = [self._resolved(config) for config in configs]
        with _counting:
            if (refused := self.launch_refusal(resolved)) is not None:
                raise refused
            if new and group:
                group = self._unused(group)
            return self._store.create(resolved, group=group, name=name, claim=claim, visitor=self._name())

    def _unused(self, group: str) -> str:
        taken = {facet.group for facet in self._store.facets()}
        numbered = (f"{group} {number}" for number in itertools.count(2))
        return next(name for name in itertools.chain([group], numbered) if name not in taken)

    def launch_refusal(self, configs: Sequence[RunConfig]) -> AccessError | None:
        """The quota that a launch would exceed; None if allowed."""
        try:
            self._within("launch", len(configs))
            self._within("threads", max((config.threads * config.processes for config in configs), default=0))
            self._room_in_queue(len(configs))
        except AccessError as error:
            return error
        return None

    def run_again(self, run_id: str) -> str:
        """Queue a new run with the configuration of any other run."""
        self.require()
        row = _example(run_id) if is_example(run_id) else self._store.get(run_id)
        if self.visitor.may(Role.OPERATOR):  # its files were named on the command line, or checked before
            return self._store.create([row.config], name=row.name, visitor=self._name())[0]
        return self.launch([row.config], name=row.name)[0]

    def stop(self, run_id: str) -> None:
        """Request a run to stop, see `isoviz.runs.store.Store.request_stop`."""
        self.require(self._own(run_id))
        self._store.request_stop(run_id)

    def resume(self, run_id: str, *, claim: str | None = None) -> None:
        """Queue a stopped, failed or lost run again."""
        self.require(self._own(run_id))
        if not self.visitor.may(Role.OPERATOR):
            self._resolved(self._store.get(run_id).config)
        with _counting:
            self._room_in_queue(1)
            self._store.requeue(run_id, claim=claim)

    def delete(self, run_id: str) -> None:
        """Remove a run with its files."""
        self.require(self._own(run_id))
        self._store.delete(run_id)

    def _own(self, run_id: str) -> RunSummary:
        """A run of the store, for a visitor who may change runs. Raises for an example."""
        self.require()
        if is_example(run_id):
            raise _EXAMPLE
        return self._store.summary(run_id)

    def rename(self, run_id: str, name: str) -> None:
        """Give a run another name."""
        self.require(self._own(run_id))
        self._store.rename(run_id, name)

    def tag(self, run_id: str, tags: Iterable[str]) -> None:
        """Replace a run's tags."""
        self.require(self._own(run_id))
        self._store.tag(run_id, tags)

    def note(self, run_id: str, note: str) -> None:
        """Replace a run's note."""
        self.require(self._own(run_id))
        self._store.note(run_id, note)

    # ------------------------------------------------------------------ uploads

    def upload_refusal(self, held: int) -> str | None:
        """The quota that this visitor's open pages would exceed with uploads of `held` bytes; None if allowed."""
        allowance = self._allowance()
        return None if allowance is None else allowance.exceeded(math.ceil(held / 1e6))

    def keep_upload(self, files: Files, task: Task | None = None, pulse: Callable[[], None] = lambda: None) -> Path:
        """Check and store the splits of a task, or a user's own tables, see `isoviz.operations.access.uploads.save`."""
        self.require()
        return uploads.save(self._store.folder, files, task, self._allowance(), pulse)

    def keep_vectors(
        self, request: ImportRequest, files: Files, pulse: Callable[[], None] = lambda: None
    ) -> SetSummary:
        """Check and store a user's vectors or texts, see `isoviz.operations.access.uploads.save_vectors`."""
        self.require()
        summary = uploads.save_vectors(self._store.folder, request, files, self._allowance(), pulse)
        vectors.STORE.shrink(keep=summary.key)
        return summary

    def forget_vectors(self, key: str) -> None:
        """Delete a stored set with its views, chains and rulers. If others own it too, remove only this visitor's ownership."""
        self.require()
        if not self.visitor.may(Role.OPERATOR):
            owners = uploads.owners_of(key)
            if self.visitor.id not in owners:  # every link to the set has its key
                raise AccessError(
                    "Someone else loaded this data", advice="Only that person or the operator can delete it."
                )
            if len(owners) > 1:
                uploads.release(key, self.visitor.id)
                return
        forgotten = user_sets.forget(key)
        whatif.forget(forgotten)
        rulers.forget(forgotten)

    # ------------------------------------------------------------------ jobs

    def start_view(self, request: ViewRequest, key: str) -> JobState:
        """Start computing a view of Explore, see `isoviz.exploring.request`."""
        request.check()
        if user_sets.is_user_set(request.task):  # a stored set is identified by its key
            resolved = replace(request, model=self._model(request.model) if request.model else "")
        else:
            resolved = replace(request, model=self._model(request.model), data=self._data(request.data))
        return self.start_job(VIEW, key, resolved.as_json())

    def show_vectors(self, request: ViewRequest, key: str, pulse: Callable[[], None] = lambda: None) -> None:
        """Compute the first figures of a user's vectors now, see `isoviz.exploring.vector_view.publish_first`."""
        self.require()
        request.check()
        arguments = {"request": request, "key": key}
        guarded.call(f"{OWN_VECTORS}:publish_first", arguments, bool, imports=VECTOR_MODULES, pulse=pulse)

    def start_job(
        self,
        kind: JobKind,
        key: str,
        request: Mapping[str, Any],
        inputs: Mapping[str, NDArray[Any]] | None = None,
        *,
        retry: bool = True,
    ) -> JobState:
        """Start the job with this key, see `isoviz.jobs.queue.start`. Anyone may see running and finished jobs."""
        state = queue.look(kind, key)
        if state.status in _SETTLED:
            return state
        self.require()
        with _counting:
            self._room_for_job()
            return queue.start(kind, key, request, inputs, retry=retry, visitor=self._name())

    def retry_job(self, kind: JobKind, key: str) -> JobState:
        """Retry a failed or lost job, see `isoviz.jobs.queue.retry`."""
        self.require()
        with _counting:
            self._room_for_job()
            return queue.retry(kind, key)

    def stop_job(self, kind: JobKind, key: str) -> None:
        """Stop a job that this visitor started, see `isoviz.jobs.queue.stop`."""
        self.require()
        if not self._asked_for(kind, key):
            raise AccessError(
                "Someone else started this computation", advice="Only that person or the operator can stop it."
            )
        queue.stop(kind, key)

    def release(self, kind: JobKind, key: str) -> None:
        """Release a job that this visitor no longer needs; it continues if another visitor started it."""
        if self.refusal() is None and self._asked_for(kind, key):
            queue.release(kind, key)

    @contextmanager
    def computing(self, pulse: Callable[[], None]) -> Iterator[None]:
        """Context of a computation outside the queue of jobs. It counts as a job, and waits until no other computation runs.

        Args:
            pulse: called while waiting; raises to end the wait.
        """
        with _counting:
            self._room_for_job()
            _computing[self.visitor.id] += 1
        try:
            while not _turn.acquire(timeout=_LOOK_SECONDS):
                pulse()
            try:
                yield
            finally:
                _turn.release()
        finally:
            with _counting:
                _computing[self.visitor.id] -= 1

    # ------------------------------------------------------------------ internal

    def roots(self) -> Roots | None:
        """Folders below which this visitor may name data and models; None: anywhere."""
        return None if self.policy.roots is None else uploads.roots(self.policy, self._store.folder)

    def resolve_paths(
        self, model: str | None = None, data: str | None = None, file: str | None = None
    ) -> tuple[str | None, str | None, str | None]:
        """A model, a data folder and a file of vectors, checked for this visitor, with resolved paths."""
        roots = self.roots()
        if file is not None and roots is not None and not stores.is_store(file):  # whose reader checks it
            file = str(allowed_paths.below(file, roots, "embeddings", DataError))
        return (None if model is None else self._model(model)), self._data(data), file

    def _resolved(self, config: RunConfig) -> RunConfig:
        """The configuration with resolved paths, so that no symbolic link can redirect them later. Refused outside the roots."""
        # it may name machines and commands
        if config.accelerate_config is not None and not self.visitor.may(Role.OPERATOR):
            raise AccessError("Only the operator can launch runs with an accelerate configuration")
        return config.model_copy(update={"model": self._model(config.model), "data": self._data(config.data)})

    def _data(self, data: str | None) -> str | None:
        roots = self.roots()
        if data is None or roots is None:
            return data
        path = allowed_paths.below(data, roots, "data", DataError)
        for file in path.glob("*"):  # a link in it can lead out of it
            if is_table(file):
                allowed_paths.below(file, roots, "data", DataError)
        return str(path)

    def _model(self, name: str) -> str:
        roots = self.roots()
        if roots is None or name in sources.bundled() or name.startswith(encoders.RUN):
            return name
        folder = allowed_paths.model_folder(name, roots, ModelError)
        if folder is None or not folder.is_dir():
            sources.refuse_folder(name)  # runs and jobs are not restricted
            return name
        allowed_paths.check_contents(folder, roots, "model", ModelError)
        return str(folder)

    def _name(self) -> str | None:
        return None if self.visitor.may(Role.OPERATOR) else self.visitor.id

    def _asked_for(self, kind: JobKind, key: str) -> bool:
        return self.visitor.may(Role.OPERATOR) or queue.requester(kind, key) == self.visitor.id

    def _within(self, quota: str, amount: int) -> None:
        if self.visitor.may(Role.OPERATOR):
            return
        limits = self.policy.quotas
        if quota == "threads" and limits.threads is None:
            limits = replace(limits, threads=devices.describe().cores)
        if (reason := limits.exceeded(quota, amount)) is not None:
            raise AccessError(reason)

    def _room_in_queue(self, count: int) -> None:
        if not self.visitor.may(Role.OPERATOR):
            queued = sum(row.visitor == self.visitor.id for row in self._store.list(status="queued"))
            self._within("queued", queued + count)

    def _room_for_job(self) -> None:
        if not self.visitor.may(Role.OPERATOR):
            self._within("jobs", queue.under_way(self.visitor.id) + _computing[self.visitor.id] + 1)

    def _allowance(self) -> Allowance | None:
        if self.visitor.may(Role.OPERATOR):
            return None
        return Allowance(self.visitor.id, lambda megabytes: self.policy.quotas.exceeded("upload_mb", megabytes))


def _example(run_id: str) -> RunRow:
    shipped = examples.opened()
    if shipped is None:
        raise StoreError(f"no run '{run_id}': the examples are switched off", field="id")
    return shipped.get(run_id)


def of_command_line(store: Store) -> Service:
    """The service for the command line on the server's machine, with all permissions."""
    return Service(store, OPERATOR, UNRESTRICTED)
