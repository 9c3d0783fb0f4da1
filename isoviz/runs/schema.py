"""The tables of the store."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text

VERSION: Final = 1
SCHEMA: Final = "version"
"""In `meta`: the version of the tables."""

metadata = MetaData()

meta = Table(
    "isoviz_meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", String(255), nullable=False),
)

REVISION: Final = "revision"
"""In `meta`: counts the changes of what a list of runs shows, so that a page need not read the same list twice."""

# Times are seconds since 1970 as floats. JSON is text, not a JSON type: nothing is ever searched inside it, and both databases
# give back exactly what was written.
runs = Table(
    "isoviz_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("group_name", Text),
    Column("status", String(16), nullable=False),
    # What lists show (`summaries`). Columns behind a long text are slow to reach in SQLite, so the long ones come last.
    Column("model", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("created", Double, nullable=False),
    Column("queued", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("heartbeat", Double),
    # The time of the request to stop, or `rows.RELEASE`.
    Column("stop_requested", Double),
    Column("resume", Boolean, nullable=False, default=False),
    # Counts claims and resumes. A worker writes only while its attempt is the current one, so a worker that was given up for lost
    # cannot write into the attempt that replaced it.
    Column("attempt", Integer, nullable=False, default=0),
    # Queued with an owner: reserved, only that owner (a command line) may run it. Running: who claimed it.
    Column("owner", Text),
    Column("host", Text),
    Column("device", Text),
    Column("pid", Integer),
    Column("pid_started", Double),
    # Where `pid` counts (`identity.pid_scope`).
    Column("pid_scope", String(16)),
    Column("last_seq", Integer, nullable=False, default=0),
    # Who launched it in the browser; null: the operator or the command line.
    Column("visitor", Text),
    Column("tags", Text, nullable=False, default="[]"),
    Column("summary", Text, nullable=False),
    Column("note", Text, nullable=False, default=""),
    Column("config", Text, nullable=False),
    Column("progress", Text),
    Column("result", Text),
    Column("error", Text),
    Index("isoviz_runs_group", "group_name"),
)
QUEUE_ORDER: Final = (runs.c.queued, runs.c.id)
"""In which waiting runs are taken."""
queue_index = Index("isoviz_runs_order", runs.c.status, *QUEUE_ORDER)

events = Table(
    "isoviz_events",
    metadata,
    Column("run_id", String(32), ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("body", Text, nullable=False),
    # The rows of a run lie together, in the order in which a cursor reads them.
    sqlite_with_rowid=False,
)
