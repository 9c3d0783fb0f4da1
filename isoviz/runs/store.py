"""The store: every run, its configuration, its events and its folder. The truth of what happened lies here and nowhere else.

What only reads is in `isoviz.runs.reading`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import ENDINGS, RESUMABLE, Event, Failed, Stopped
from isoviz.home import store_url
from isoviz.runs import summaries as _summaries
from isoviz.runs.database import Database, StoreUnavailableError
from isoviz.runs.identity import new_id, one_line, run_name, this_place, this_process
from isoviz.runs.reading import RunReader, RunRows
from isoviz.runs.rows import (
    RELEASE,
    RunRow,
    Signals,
    change_of,
    check_writer,
    row_of,
    signals_of,
)
from isoviz.runs.schema import QUEUE_ORDER, REVISION
from isoviz.runs.schema import events as _events
from isoviz.runs.schema import meta as _meta
from isoviz.runs.schema import runs as _runs

__all__ = ["RunRow", "Signals", "Store", "StoreUnavailableError"]


_QUEUED_AGAIN: Final = {"status": "queued", "resume": True, "stop_requested": None, "ended": None, "error": None}


class Store(RunReader):
    """A database of runs and the folder of their artifacts. One object may serve many threads.

    Who may write what: the process that creates a run writes its row; the runner that claimed it writes worker and loss; the worker of
    the current attempt alone appends events, until an ending. An ended run changes only by `requeue`, and by its name, tags
    and note. Every method raises `StoreError` for an unknown id and `StoreUnavailableError` when the database does not answer.

    Args:
        url_or_dir: a database URL, a folder, or None for `isoviz.home.home()`. Created if it does not exist.

    Raises:
        StoreError: it cannot be opened (see `isoviz.runs.database.Database`).
    """

    def __init__(self, url_or_dir: str | Path | None = None) -> None:
        self._database: Database
        super().__init__(Database(store_url(url_or_dir)))

    @property
    def url(self) -> str:
        """The URL with which another process opens the same store. It may hold a password: never show it."""
        return self._database.url

    @property
    def has_password(self) -> bool:
        """Whether the URL contains a password."""
        return self._database.has_password

    def close(self) -> None:
        """Close the database connections that are not in use."""
        self._database.engine.dispose()

    # ------------------------------------------------------------------ runs come and go

    def create(
        self,
        configs: Sequence[RunConfig],
        *,
        group: str | None = None,
        name: str | None = None,
        claim: str | None = None,
        visitor: str | None = None,
    ) -> list[str]:
        """Queue runs, all or none.

        Args:
            configs: one per run, in the order in which they shall run.
            group: the name of the experiment they belong to; it need not be new.
            name: their name. Default: method, task and seed.
            claim: reserve them for this owner: no runner takes them, only `claim(owner, …, id=…)`. They are lost when the
                calling process dies.
            visitor: who launches them in the browser (`isoviz.operations.access`).

        Returns:
            Their ids, which sort by creation.
        """
        ids = [new_id() for _ in configs]
        now = time.time()
        process = {"owner": claim, **this_process(), "heartbeat": now} if claim else {}
        records = [
            {
                "id": run_id,
                "name": run_name(config, name),
                "group_name": group,
                "status": "queued",
                "config": config.model_dump_json(),
                **_summaries.columns(config),
                "created": now,
                "queued": now,
                "visitor": visitor,
                **process,
            }
            for run_id, config in zip(ids, configs, strict=True)
        ]
        if records:
            with self._database.writing() as connection:
                connection.execute(sa.insert(_runs), records)
                self._changed(connection)
        return ids

    def delete(self, run_id: str) -> None:
        """Remove a run, its events and its folder. A running one is refused."""
        # One statement, which a claim at the same moment waits for or goes before; the events go with it (ON DELETE CASCADE).
        gone = sa.delete(_runs).where(_runs.c.id == run_id, _runs.c.status != "running")
        with self._database.writing() as connection:
            if connection.execute(gone).rowcount == 0:
                self._record(connection, run_id)
                raise StoreError(f"run '{run_id}' is running: stop it before deleting it")
            self._changed(connection)
        shutil.rmtree(self.path_of(run_id), ignore_errors=True)

    def rename(self, run_id: str, name: str) -> None:
        """Give a run another name: one line of 1 to 200 characters."""
        self._set(run_id, name=one_line(name, "name"))

    def tag(self, run_id: str, tags: Iterable[str]) -> None:
        """Replace a run's tags. Order is kept, repeats are dropped."""
        self._set(run_id, tags=json.dumps(list(dict.fromkeys(one_line(tag, "tag") for tag in tags))))

    def note(self, run_id: str, note: str) -> None:
        """Replace a run's note."""
        self._set(run_id, note=note)

    # ------------------------------------------------------------------ the life of a run

    def append(
        self, run_id: str, events: Sequence[Event], *, attempt: int | None = None, times: Sequence[float] | None = None
    ) -> int:
        """Append events; an ending also sets the status, result and error, in the same transaction.

        Args:
            events: in the order in which they happened; an ending only as the last.
            attempt: the writer's; refused if the run was claimed anew since.
            times: when each happened (seconds since 1970). Default: now.

        Returns:
            The sequence number of the last one.

        Raises:
            StoreError: the run is not running (any more), or by another attempt.
        """
        ending = bool(events) and events[-1].kind in ENDINGS
        with self._database.writing() as connection:
            # Taking the numbers holds the row until the end of the transaction: they have neither gaps nor twins.
            taken = sa.update(_runs).where(_runs.c.id == run_id).values(last_seq=_runs.c.last_seq + len(events))
            record = connection.execute(taken.returning(_runs)).mappings().one_or_none()
            if record is None:
                raise self._unknown(run_id)
            check_writer(record, attempt, ending=ending)
            self._insert(connection, record, events, times or [time.time()] * len(events))
        return int(record["last_seq"])

    def claim(
        self, owner: str, device: str, *, id: str | None = None, only: str | None = None, gpus: int | None = None
    ) -> RunRow | None:
        """Take the first run of the queue: of all who ask at once, one gets it.

        A run that is to be resumed goes to a host that has its checkpoints, because it works in the same folder.

        Args:
            owner: who takes it.
            device: the slot it will run on.
            id: take this run, queued or reserved for `owner`, instead of the first; the calling process will run it.
            only: take this run for another process, unless it waits for a host that has its checkpoints.
            gpus: leave runs of more processes than these to others. Without GPUs, None.

        Returns:
            The run, now `running`, or None if there is none to take.
        """
        free: sa.ColumnElement[bool] = sa.and_(_runs.c.status == "queued", _runs.c.owner.is_(None))
        if id is not None:
            free = sa.and_(
                _runs.c.status == "queued", _runs.c.id == id, sa.or_(_runs.c.owner.is_(None), _runs.c.owner == owner)
            )
        elif not self._database.is_sqlite:
            free = sa.and_(
                free,
                sa.or_(_runs.c.resume.is_(False), _runs.c.host.is_(None), _runs.c.host.in_(self._database.hosts())),
            )
        if only is not None:
            free = sa.and_(free, _runs.c.id == only)
        if gpus is not None:
            # In JSON a quote inside of a text has a backslash, so these are the fields.
            config = _runs.c.config
            fitting = [config.contains(f'"processes":{count},') for count in range(1, gpus + 1)]
            free = sa.and_(free, sa.or_(config.contains('"accelerate_config":"'), *fitting))
        first = sa.select(_runs.c.id).where(free).order_by(*QUEUE_ORDER).limit(1)
        with self._database.reading() as connection:
            if connection.scalar(first) is None:
                return None
        taken = (
            sa.update(_runs)
            .where(_runs.c.id == first.with_for_update(skip_locked=True).scalar_subquery(), _runs.c.status == "queued")
            .values(
                status="running",
                owner=owner,
                device=device,
                **(this_process() if id is not None else {"pid": None, "pid_started": None, **this_place()}),
                attempt=_runs.c.attempt + 1,
                started=self._database.now(),
                heartbeat=self._database.now(),
            )
            .returning(_runs)
        )
        with self._database.writing() as connection:
            record = connection.execute(taken).mappings().one_or_none()
            if record is not None:
                self._changed(connection)
        if record is None:
            return None
        try:
            return row_of(record, None)
        except StoreError as error:
            # no one could run it: it must not be taken again and again
            failed = Failed(error=type(error).__name__, message=str(error), advice=error.advice or "")
            self.append(record["id"], [failed], attempt=record["attempt"])
            if id is not None:
                raise
            return None

    def set_worker(
        self, run_id: str, pid: int, pid_started: float, attempt: int | None = None, device: str | None = None
    ) -> None:
        """Note which process of this machine runs a run.

        Args:
            attempt: refuse the process if the run is not running in this attempt, or has another process.
            device: the slots that it uses, separated by commas. Default: the slot that claimed the run.

        Raises:
            StoreError: refused.
        """
        mine = sa.update(_runs).where(_runs.c.id == run_id)
        if attempt is not None:
            # on Windows, the Python of a virtual environment starts another one
            free = sa.or_(_runs.c.pid.is_(None), _runs.c.pid.in_((pid, os.getppid())))
            mine = mine.where(_runs.c.status == "running", _runs.c.attempt == attempt, free)
            self.hosts()
        with self._database.writing() as connection:
            worker = {"pid": pid, "pid_started": pid_started, **({"device": device} if device else {})}
            if connection.execute(mine.values(**worker, **this_place())).rowcount == 0:
                self._record(connection, run_id)
                raise StoreError(f"run '{run_id}' is no longer at attempt {attempt}, or another process trains it")

    def hosts(self) -> list[str]:
        """The machines that share this store's folder, where they find each other's checkpoints; adds this one."""
        return self._database.hosts()

    def heartbeat(self, run_id: str, attempt: int | None = None) -> None:
        """Say that a run's process lives, and with it the runs that are reserved for the same owner.

        Raises:
            StoreError: the run is not running (any more), or by another attempt.
        """
        owner = sa.select(_runs.c.owner).where(_runs.c.id == run_id).scalar_subquery()
        reserved = sa.and_(_runs.c.status == "queued", _runs.c.owner == owner)
        with self._database.writing() as connection:
            check_writer(self._record(connection, run_id), attempt, ending=False)
            connection.execute(
                sa.update(_runs).where(sa.or_(_runs.c.id == run_id, reserved)).values(heartbeat=self._database.now())
            )

    def held_runs(self, silent_seconds: float | None = None) -> RunRows:
        """Running and reserved runs; with `silent_seconds` those that have shown no heartbeat for longer."""
        held = sa.and_(_runs.c.status.in_(("running", "queued")), _runs.c.owner.is_not(None))
        if silent_seconds is not None:
            held = sa.and_(held, _runs.c.heartbeat < self._database.now() - silent_seconds)
        query = sa.select(_runs).where(held).order_by(_runs.c.id)
        with self._database.reading() as connection:
            rows = [self._readable(record) for record in connection.execute(query).mappings()]
        return [row for row in rows if row is not None]

    def request_stop(self, run_id: str) -> None:
        """Ask a run to stop: a queued one has stopped at once, an ended one stays as it is.

        A running one stops after the optimiser step at hand, with a checkpoint.
        """
        before, now = _runs.c.stop_requested, self._database.now()
        first = sa.case((before == RELEASE, now), else_=sa.func.coalesce(before, now))
        with self._database.writing() as connection:
            wish = sa.update(_runs).where(_runs.c.id == run_id, _runs.c.status.in_(("queued", "running")))
            wish = wish.values(
                stop_requested=first, last_seq=_runs.c.last_seq + sa.case((_runs.c.status == "queued", 1), else_=0)
            )
            record = connection.execute(wish.returning(_runs)).mappings().one_or_none()
            if record is None:
                self._record(connection, run_id)
            elif record["status"] == "queued":
                stopped = Stopped(step=signals_of(record).checkpoint_step)
                self._insert(connection, record, [stopped], [time.time()])

    def request_release(self, run_id: str, attempt: int) -> None:
        """Ask a running run to stop after its current step so that `release` can queue it. A user's request to stop comes first."""
        mine = sa.update(_runs).where(_runs.c.id == run_id, _runs.c.attempt == attempt, _runs.c.status == "running")
        with self._database.writing() as connection:
            connection.execute(mine.where(_runs.c.stop_requested.is_(None)).values(stop_requested=RELEASE))

    def release(self, run_id: str, attempt: int) -> bool:
        """Put a claimed run back to its place in the queue: no worker began it, or its worker has stopped or is lost.

        Returns:
            Whether it is queued: not while a worker trains it, and not if a user stopped its worker.
        """
        mine = sa.update(_runs).where(_runs.c.id == run_id, _runs.c.attempt == attempt)
        never_begun = mine.where(
            _runs.c.status == "running", sa.or_(_runs.c.pid.is_(None), _runs.c.pid_started.is_(None))
        )
        ended = mine.where(
            _runs.c.status.in_(("stopped", "lost")),
            sa.or_(_runs.c.stop_requested.is_(None), _runs.c.stop_requested == RELEASE),
        )
        with self._database.writing() as connection:
            again = ended.values(**_QUEUED_AGAIN, attempt=attempt + 1, owner=None)
            fresh = never_begun.values(status="queued", owner=None, started=None, heartbeat=None)
            queued = any(connection.execute(change).rowcount for change in (again, fresh))
            if queued:
                self._changed(connection)
        return queued

    def signals(self, run_id: str) -> Signals:
        """What a watcher of a run needs to know several times a second."""
        columns = (_runs.c.status, _runs.c.attempt, _runs.c.stop_requested, _runs.c.progress)
        with self._database.reading() as connection:
            record = connection.execute(sa.select(*columns).where(_runs.c.id == run_id)).mappings().one_or_none()
        if record is None:
            raise self._unknown(run_id)
        return signals_of(record)

    def requeue(self, run_id: str, *, claim: str | None = None) -> None:
        """Queue a stopped, failed or lost run again; it will go on from its last checkpoint.

        Args:
            claim: reserve it for this owner, as in `create`.
        """
        now = time.time()
        process = {"owner": claim, **this_process(), "heartbeat": now} if claim else {"owner": None}
        again = sa.update(_runs).where(_runs.c.id == run_id, _runs.c.status.in_(sorted(RESUMABLE)))
        with self._database.writing() as connection:
            done = connection.execute(again.values(**_QUEUED_AGAIN, queued=now, attempt=_runs.c.attempt + 1, **process))
            if done.rowcount == 0:
                status = self._record(connection, run_id)["status"]
                raise StoreError(
                    f"run '{run_id}' cannot be resumed: it is {status} (allowed: {', '.join(sorted(RESUMABLE))})"
                )
            self._changed(connection)

    # ------------------------------------------------------------------ inside

    def _insert(
        self, connection: sa.Connection, record: sa.RowMapping, new: Sequence[Event], times: Sequence[float]
    ) -> None:
        """Write events whose numbers end with the record's `last_seq`, and what they change in the record."""
        if not new:
            return
        first = record["last_seq"] - len(new) + 1
        rows = [
            {"run_id": record["id"], "seq": first + place, "time": moment, "body": event.model_dump_json()}
            for place, (event, moment) in enumerate(zip(new, times, strict=True))
        ]
        connection.execute(sa.insert(_events), rows)
        change = change_of(record, new, times[-1])
        summary = _summaries.after(record["summary"], new)
        if summary is not None:
            change["summary"] = summary
        connection.execute(sa.update(_runs).where(_runs.c.id == record["id"]).values(**change))
        if summary is not None or "status" in change:
            self._changed(connection)

    def _changed(self, connection: sa.Connection) -> None:
        """Count a change of what lists show; the last statement of its transaction, because in PostgreSQL others wait for it."""
        value = sa.cast(sa.cast(_meta.c.value, sa.BigInteger) + 1, sa.String)
        connection.execute(sa.update(_meta).where(_meta.c.key == REVISION).values(value=value))

    def _set(self, run_id: str, **values: Any) -> None:
        with self._database.writing() as connection:
            if connection.execute(sa.update(_runs).where(_runs.c.id == run_id).values(**values)).rowcount == 0:
                raise self._unknown(run_id)
            if "name" in values:
                self._changed(connection)
