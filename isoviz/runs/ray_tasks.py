"""Queued runs as tasks of a Ray cluster: Ray finds the node and its GPUs, the store keeps everything else.

A run stays in IsoViz's queue until its task begins, which claims it, so nothing runs twice. This program owns the tasks: they end with it,
and the next one resumes their runs from their checkpoints.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from isoviz import devices
from isoviz.errors import InputError, StoreError, shortened
from isoviz.events import Checkpointed, Lost, Stopped
from isoviz.jobs.worker import log_to
from isoviz.runs.execution import DEFAULT_TRAIN, LOG, train_run
from isoviz.runs.recovery import end, lost, mark_lost
from isoviz.runs.runner import SAVE_SECONDS
from isoviz.runs.store import RunRow, Store, StoreUnavailableError

POLL_SECONDS: Final = 1.0
OWNER: Final = "ray"
MOST_LOSSES: Final = 3
"""A run that is lost this often without a new checkpoint is not resumed again."""
_AHEAD: Final = 8
"""Tasks of one size that wait in Ray, so that it can add nodes; all other runs wait in the queue, where they can be moved and stopped."""
_RETRY_SECONDS: Final = 60.0
"""After a task that could not take its run, because the node has neither its checkpoints nor the store."""


def train_one(url: str, home: str, run: str, train: str, gpus: int) -> int:
    """The task: claim a run that is still queued, and train it. Returns 0 when the run ended in the store, 1 if it did not, 2 if it
    could not be claimed here."""
    os.environ["ISOVIZ_HOME"] = home
    if not gpus:  # Ray hides GPUs only from tasks that have some
        os.environ[devices.VISIBLE] = ""
    store = Store(url)
    row = store.claim(OWNER, OWNER, only=run)
    if row is None:
        return 2
    log_to(store.folder_of(run) / LOG)
    return train_run(url, run, train, row.attempt, requeue=True)


class RayTasks:
    """Keeps a task in the cluster for each run that can begin, and follows it to its end.

    Args:
        store: whose runs. Every node must reach it, and see its folder under the same path.
        address: of the cluster, as `ray.init` takes it; `auto`: the one of this machine or of `RAY_ADDRESS`.
        cpus, gpus: of a run; of GPUs, as many for each of its processes.
        say: prints a line for the user.
        train: see `isoviz.runs.execution`.

    Raises:
        InputError: there is no such cluster, or its tasks could not open the store safely.
    """

    def __init__(
        self,
        store: Store,
        address: str = "auto",
        *,
        cpus: int = 1,
        gpus: int = 0,
        say: Callable[[str], None] = print,
        train: str = DEFAULT_TRAIN,
    ) -> None:
        import ray

        if store.has_password:
            raise InputError.at(
                "ray",
                "the store's URL contains a password, which everyone on the cluster could read",
                "Put it into a file that all nodes see, and set PGPASSFILE.",
            )
        try:
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, SystemExit):  # ray ends a program where no one answers
            raise InputError.at(
                "ray",
                f"no cluster answers at '{shortened(address)}'",
                "Run this on a node of the cluster, or as a job: ray job submit -- isoviz worker --ray auto.",
            ) from None
        if store.url.startswith("sqlite") and len(ray.nodes()) > 1:
            ray.shutdown()
            raise InputError.at("ray", "several nodes need a PostgreSQL store: SQLite must stay on one machine")
        self._ray: Any = ray
        self._store, self._say, self._train = store, say, train
        self._cpus, self._gpus = cpus, gpus
        self._task = ray.remote(max_calls=1, max_retries=0)(train_one)  # a process of its own for each run
        self._tasks: dict[str, Any] = {}  # run → Ray's reference
        self._stop_seen: dict[str, float] = {}
        self._retry: dict[str, float] = {}

    def serve(self, idle: float, stop: Callable[[], bool]) -> None:
        """Work until `stop`, or until there has been no run for `idle` seconds. Runs that still train go back into the queue."""
        busy, waiting = time.monotonic(), False
        try:
            while not stop() and time.monotonic() - busy < idle:
                try:
                    self._turn()
                    waiting = False
                except StoreUnavailableError as error:
                    if not waiting:
                        self._say(f"{error}. Waiting for it.")
                    waiting = True
                if self._tasks or waiting:
                    busy = time.monotonic()
                time.sleep(POLL_SECONDS)
            self._release()
        finally:
            self._ray.shutdown()

    def _turn(self) -> None:
        self._collect()
        mark_lost(self._store)
        for row in self._store.list(status="lost"):
            if row.owner == OWNER and row.id not in self._tasks and self._losses(row) < MOST_LOSSES:
                self._requeue(row.id, row.attempt)
        for row in self._store.list(status="running"):
            if row.id in self._tasks and row.stop_requested:
                self._enforce_stop(row)
        self._submit()

    def _collect(self) -> None:
        """Forget the tasks that have ended; a run that one of them left unfinished is lost."""
        for run, task in list(self._tasks.items()):
            if not self._ray.wait([task], timeout=0)[0]:
                continue
            del self._tasks[run]
            self._stop_seen.pop(run, None)
            try:
                code, reason = self._ray.get(task), ""
            except self._ray.exceptions.RayError as error:  # the process was killed, or its node is gone
                code, reason = None, next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
            with suppress(StoreError):  # deleted meanwhile
                row = self._store.get(run)
                if row.status == "running" and row.owner == OWNER:
                    self._lose(row, lost(code, reason))
                elif row.status == "queued" and code != 0:
                    self._retry[run] = time.monotonic() + _RETRY_SECONDS
                    self._say(f"run {run} could not begin ({reason or 'its checkpoints are on another machine'})")

    def _lose(self, row: RunRow, event: Lost) -> None:
        if self._losses(row) + 1 >= MOST_LOSSES:
            advice = (
                f"Lost {MOST_LOSSES} times without a new checkpoint, so it does not resume by itself. {event.advice}"
            )
            event = event.model_copy(update={"advice": advice})
        if end(self._store, row.id, row.attempt, event):
            self._say(f"run {row.id} is lost: {event.message}")

    def _losses(self, row: RunRow) -> int:
        saved = self._store.newest_of_kind(row.id, Checkpointed)
        return len(self._store.events_of_kind(row.id, Lost, since=0.0 if saved is None else saved[0]))

    def _enforce_stop(self, row: RunRow) -> None:
        seen = self._stop_seen.setdefault(row.id, time.monotonic())
        if time.monotonic() - seen > SAVE_SECONDS:
            self._ray.cancel(self._tasks[row.id], force=True)
            step = self._store.signals(row.id).checkpoint_step
            end(self._store, row.id, row.attempt, Stopped(step=step, forced=True))

    def _submit(self) -> None:
        now = time.monotonic()
        queued = self._store.list(status="queued", order="queue")
        waiting = Counter(row.config.processes for row in queued if row.id in self._tasks)
        for row in queued:
            width = row.config.processes
            free = row.owner is None and row.id not in self._tasks and self._retry.get(row.id, 0.0) < now
            if not free or waiting[width] >= _AHEAD:
                continue
            waiting[width] += 1
            task = self._task.options(num_cpus=self._cpus, num_gpus=self._gpus * width, name=f"isoviz {row.id}")
            self._tasks[row.id] = task.remote(self._store.url, str(self._store.folder), row.id, self._train, self._gpus)
            self._say(f"run {row.id}: {row.name}")

    def _release(self) -> None:
        deadline = time.monotonic() + SAVE_SECONDS
        held: dict[str, int] = {}
        with suppress(StoreUnavailableError):
            for row in self._store.list(status="queued"):
                if (task := self._tasks.pop(row.id, None)) is not None:
                    self._ray.cancel(task, force=True)
            while self._tasks and time.monotonic() < deadline:
                for row in self._store.list(status="running"):
                    if row.id in self._tasks:
                        held[row.id] = row.attempt
                        self._store.request_release(row.id, row.attempt)
                time.sleep(POLL_SECONDS)
                self._collect()
            for run, attempt in held.items():
                self._requeue(run, attempt)

    def _requeue(self, run: str, attempt: int) -> None:
        if self._store.release(run, attempt):
            self._say(f"run {run} is back in the queue")
