"""Reading runs, their events and folders, from a store or the bundled examples."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, func, select

from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import Event, parse_event
from isoviz.runs import summaries as _summaries
from isoviz.runs.database import Database, SealedDatabase
from isoviz.runs.rows import STATUSES, RunRow, row_of
from isoviz.runs.schema import QUEUE_ORDER, REVISION
from isoviz.runs.schema import events as _events
from isoviz.runs.schema import meta as _meta
from isoviz.runs.schema import runs as _runs
from isoviz.runs.summaries import Facet, RunSummary, summary_of_record

_log = logging.getLogger(__name__)
E = TypeVar("E", bound=Event)

RunRows = list[RunRow]
Summaries = list[RunSummary]
Facets = list[Facet]
EventsOf = list[E]
EventRows = list[tuple[int, dict[str, Any]]]
_SUMMARIES: Final = select(*(_runs.c[name] for name in (*_summaries.LISTED, "summary")))


class RunReader:
    """Read access to a database of runs and the folder of their artifacts. Thread-safe.

    Methods with a run id raise `StoreError` for an unknown id; all raise `StoreUnavailableError` if the database does not respond.
    """

    def __init__(self, database: Database | SealedDatabase) -> None:
        self._database = database
        self.folder = database.folder

    def __str__(self) -> str:
        return str(self._database)

    def _reading(self, *, run_id: str = "", group: str | None = None) -> AbstractContextManager[Connection]:
        """A connection to the database with this run or experiment."""
        return self._database.reading()

    def get(self, run_id: str) -> RunRow:
        """One run. Raises `StoreError` also if its record is damaged or of a newer version."""
        with self._reading(run_id=run_id) as connection:
            record = self._record(connection, run_id)
            position = self._positions(connection).get(run_id) if record["status"] == "queued" else None
        return row_of(record, position)

    def list(
        self,
        *,
        status: str | Iterable[str] | None = None,
        group: str | None = None,
        limit: int | None = None,
        order: Literal["newest", "oldest", "queue"] = "newest",
    ) -> RunRows:
        """Readable runs, newest first; with `order="queue"` in the order of the queue."""
        query = select(_runs).where(_summaries.where(status, group)).limit(limit)
        match order:
            case "newest":
                query = query.order_by(_runs.c.id.desc())
            case "oldest":
                query = query.order_by(_runs.c.id)
            case "queue":
                query = query.order_by(*QUEUE_ORDER)
        with self._reading(group=group) as connection:
            records = connection.execute(query).mappings().all()
            positions = self._positions(connection) if any(r["status"] == "queued" for r in records) else {}
        return [row for record in records if (row := self._readable(record, positions.get(record["id"])))]

    def _readable(self, record: RowMapping, position: int | None = None) -> RunRow | None:
        try:
            return row_of(record, position)
        except StoreError as error:
            _log.warning("%s", error)
            return None

    def summaries(
        self,
        *,
        status: str | Iterable[str] | None = None,
        group: str | None = None,
        model: Collection[str] = (),
        task: Collection[str] = (),
        method: Collection[str] = (),
        limit: int | None = None,
    ) -> Summaries:
        """Summaries of runs for lists, newest first.

        Args:
            status, model, task, method: only runs with one of these; empty for all.
            group: only runs of this experiment.
        """
        where = _summaries.where(status, group, model=model, task=task, method=method)
        query = _SUMMARIES.where(where).order_by(_runs.c.id.desc()).limit(limit)
        with self._reading(group=group) as connection:
            return [summary_of_record(record) for record in connection.execute(query).mappings()]

    def summary(self, run_id: str) -> RunSummary:
        """Summary of one run for lists."""
        with self._reading(run_id=run_id) as connection:
            record = connection.execute(_SUMMARIES.where(_runs.c.id == run_id)).mappings().one_or_none()
        if record is None:
            raise self._unknown(run_id)
        return summary_of_record(record)

    def existing(self, configs: Collection[RunConfig]) -> dict[tuple[str, int], str]:
        """`RunConfig.identity` → id of the newest equal run that has finished, waits or runs.

        Stopping runs do not count. Equal runs have the same data folder; changes of its files are not detected.
        """
        wanted = {config.identity for config in configs}
        stopping = {row.id for row in self.list(status="running") if row.stop_requested}
        ids: dict[tuple[str, int], str] = {}
        models, used, slugs = ({getattr(config, name) for config in configs} for name in ("model", "task", "method"))
        there = ("finished", "queued", "running")
        for run in self.summaries(status=there, model=models, task=used, method=slugs):  # newest first
            if (run.setup, run.seed) in wanted and run.id not in stopping:
                ids.setdefault((run.setup, run.seed), run.id)
        return ids

    def revision(self) -> str:
        """A value that changes whenever the results of `summaries` or `facets` change."""
        with self._database.reading() as connection:
            return str(connection.scalar(select(_meta.c.value).where(_meta.c.key == REVISION)))

    def facets(self) -> Facets:
        """Existing combinations of experiment, model, task, method and status with their number of runs, newest first."""
        properties = [_runs.c[name] for name in ("group_name", "model", "task", "method", "status")]
        query = select(*properties, func.count()).group_by(*properties).order_by(func.max(_runs.c.id).desc())
        with self._database.reading() as connection:
            return [Facet._make(row) for row in connection.execute(query)]

    def counts(self) -> dict[str, int]:
        """Number of runs per status, including 0."""
        query = select(_runs.c.status, func.count()).group_by(_runs.c.status)
        with self._database.reading() as connection:
            counts = {row[0]: row[1] for row in connection.execute(query)}
        return {status: counts.get(status, 0) for status in STATUSES}

    def events(self, run_id: str, after: int = 0, limit: int = 5000) -> EventRows:
        """The events after a cursor, in order: (sequence number, event as JSON data with `kind` and `time`).

        The cursor for the next call is the last sequence number; 0 is the beginning.
        """
        query = (
            select(_events.c.seq, _events.c.time, _events.c.body)
            .where(_events.c.run_id == run_id, _events.c.seq > after)
            .order_by(_events.c.seq)
            .limit(limit)
        )
        with self._reading(run_id=run_id) as connection:
            rows = connection.execute(query).all()
            if not rows:
                self._record(connection, run_id)
        return [(seq, {**json.loads(body), "time": moment}) for seq, moment, body in rows]

    def events_of_kind(
        self, run_id: str, kind: type[E], limit: int | None = None, *, since: float = 0.0
    ) -> EventsOf[E]:
        """A run's events of one class, in order.

        Args:
            since: only events after this time, in seconds since 1970.
        """
        query = self._of_kind(run_id, kind, _events.c.body).where(_events.c.time > since)
        query = query.order_by(_events.c.seq).limit(limit)
        with self._reading(run_id=run_id) as connection:
            bodies = connection.scalars(query).all()
            if not bodies:
                self._record(connection, run_id)
        parsed = (parse_event(json.loads(body)) for body in bodies)
        return [event for event in parsed if isinstance(event, kind)]

    def newest_of_kind(self, run_id: str, kind: type[E]) -> tuple[float, E] | None:
        """Time and content of a run's last event of one class; None if there is none."""
        query = self._of_kind(run_id, kind, _events.c.time, _events.c.body).order_by(_events.c.seq.desc()).limit(1)
        with self._reading(run_id=run_id) as connection:
            row = connection.execute(query).one_or_none()
        event = None if row is None else parse_event(json.loads(row.body))
        return (row.time, event) if row is not None and isinstance(event, kind) else None

    def _of_kind(self, run_id: str, kind: type[Any], *columns: ColumnElement[Any]) -> Select[Any]:
        start = f'{{"kind":"{kind.model_fields["kind"].default}"'
        return select(*columns).where(_events.c.run_id == run_id, _events.c.body.startswith(start, autoescape=True))

    def folder_of(self, run_id: str) -> Path:
        """The folder of a run's artifacts, which may not exist yet."""
        with self._reading(run_id=run_id) as connection:
            self._record(connection, run_id)
        return self.path_of(run_id)

    def path_of(self, run_id: str) -> Path:
        """The folder without checking that the run exists."""
        return self.folder / "runs" / run_id

    def disk_use(self, run_id: str) -> int:
        """Bytes in a run's folder."""
        return sum(path.lstat().st_size for path in self.folder_of(run_id).rglob("*") if path.is_file())

    # ------------------------------------------------------------------ internal

    def _unknown(self, run_id: str) -> StoreError:
        return StoreError(f"no run '{run_id}' in the store {self}", field="id")

    def _record(self, connection: Connection, run_id: str) -> RowMapping:
        record = connection.execute(select(_runs).where(_runs.c.id == run_id)).mappings().one_or_none()
        if record is None:
            raise self._unknown(run_id)
        return record

    def _positions(self, connection: Connection) -> dict[str, int]:
        waiting = select(_runs.c.id).where(_runs.c.status == "queued", _runs.c.owner.is_(None))
        ids = connection.scalars(waiting.order_by(*QUEUE_ORDER))
        return {run_id: place for place, run_id in enumerate(ids, start=1)}
