"""The tables of the store. A change here raises `VERSION` and adds a step to `STEPS`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text

VERSION: Final = 3

metadata = MetaData()

meta = Table(
    "isoviz_meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", String(255), nullable=False),
)

# Times are seconds since 1970 as floats. JSON is text, not a JSON type: nothing is ever searched inside it, and both databases
# give back exactly what was written.
runs = Table(
    "isoviz_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("group_name", Text),
    Column("status", String(16), nullable=False),
    Column("config", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("queued", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("heartbeat", Double),
    # When a stop was asked for; 0 (`rows.AT_ONCE`) when it was asked for again.
    Column("stop_requested", Double),
    Column("resume", Boolean, nullable=False),
    # Counts claims and resumes. A worker writes only while its attempt is the current one, so a worker that was given up for lost
    # cannot write into the attempt that replaced it.
    Column("attempt", Integer, nullable=False),
    # Queued with an owner: reserved, only that owner (a command line) may run it. Running: who claimed it.
    Column("owner", Text),
    Column("host", Text),
    Column("device", Text),
    Column("pid", Integer),
    Column("pid_started", Double),
    # Where `pid` counts (`identity.pid_scope`); null: written by a version that did not know.
    Column("pid_scope", String(16)),
    Column("last_seq", Integer, nullable=False),
    # Who launched it in the browser; null: the operator, the command line, or a version that did not know visitors.
    Column("visitor", Text),
    Column("tags", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("progress", Text),
    Column("result", Text),
    Column("error", Text),
    Index("isoviz_runs_queue", "status", "queued", "id"),
    Index("isoviz_runs_group", "group_name"),
)

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

STEPS: Final = {
    2: ("ALTER TABLE isoviz_runs ADD COLUMN visitor TEXT",),
    3: ("ALTER TABLE isoviz_runs ADD COLUMN pid_scope VARCHAR(16)",),
}
"""Version → the statements that lead to it from the one before, in SQL that both databases understand."""
