"""The tables of the store. A change here raises `VERSION`, and `isoviz.runs.migration` learns the step."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text

VERSION: Final = 5

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
    Column("config", Text, nullable=False),
    Column("created", Double, nullable=False),
    # Waiting runs are taken by priority (`queue_order.PRIORITIES`), then by `queued`; reordering the queue changes both.
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("queued", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("heartbeat", Double),
    # The time of the request to stop, or `rows.AT_ONCE` or `rows.RETURN`.
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
    Index("isoviz_runs_group", "group_name"),
)
QUEUE_ORDER: Final = (runs.c.priority.desc(), runs.c.queued, runs.c.id)
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

# What lists show of a run, so that they need not parse its configuration and result: derived from these by `isoviz.runs.summaries`
# and written in the same transaction. A table of its own, because columns behind a long text are slow to reach in SQLite.
summaries = Table(
    "isoviz_summaries",
    metadata,
    Column("run_id", String(32), ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("setup", String(32), nullable=False),
    Column("model", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("epochs", Integer, nullable=False),
    Column("collapsed", Text, nullable=False),
    Column("random_weights", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("advice", Text, nullable=False),
    Column("eval_rows", Integer),
    # Characters of the texts that this was derived from: where they differ from the run's, the run was changed by something that
    # does not know summaries (an older version, a damaged disk, a person).
    Column("config_length", Integer, nullable=False),
    Column("ending_length", Integer),
)

# Each setup once: all of a configuration but seed, thread count and the minutes between checkpoints, as JSON.
setups = Table(
    "isoviz_setups", metadata, Column("key", String(32), primary_key=True), Column("body", Text, nullable=False)
)

# Every number that a list may show of a run, by kind (see `summaries.KINDS`), in the order in which the run reported them.
numbers = Table(
    "isoviz_numbers",
    metadata,
    Column("run_id", String(32), ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("value", Double),
    # Why there is no value.
    Column("undefined", Text, nullable=False),
    sqlite_with_rowid=False,
)
