"""Upgrading stores of older versions when they are opened.

`STEPS` maps a schema version to the step from the previous version. Steps only add missing tables and columns, because an earlier step
may already have created a table in its current form. To add a column: add it to `schema`, raise `schema.VERSION`, and add a step
`lambda connection: add_column(connection, schema.TABLE.c.NAME)`; the column needs a `server_default` or must be nullable. Derived data
is recomputed for all runs after the steps if the store is older than `DERIVED_SINCE`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Column, Connection, inspect, select, update
from sqlalchemy.schema import CreateColumn

from isoviz.events import Started, parse_event
from isoviz.runs import schema, summaries

DERIVED_SINCE: Final = 4
"""The version since which summaries have been derived in the current way. Raise it when that changes."""


def _summaries(connection: Connection) -> None:
    for table in (schema.setups, schema.summaries, schema.numbers):
        table.create(connection, checkfirst=True)
    if connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == schema.REVISION)) is None:
        connection.execute(schema.meta.insert().values(key=schema.REVISION, value="0"))


def _priorities(connection: Connection) -> None:
    add_column(connection, schema.runs.c.priority)
    connection.exec_driver_sql("DROP INDEX IF EXISTS isoviz_runs_queue")  # the index for ordering only by time
    schema.queue_index.create(connection, checkfirst=True)


STEPS: Final[Mapping[int, Callable[[Connection], None]]] = MappingProxyType(
    {
        2: lambda connection: add_column(connection, schema.runs.c.visitor),
        3: lambda connection: add_column(connection, schema.runs.c.pid_scope),
        4: _summaries,
        5: _priorities,
    }
)


def upgrade(connection: Connection) -> None:
    """Upgrade a store to the current version, in one exclusive transaction, if needed."""
    known = int(connection.scalar(_VERSION) or 0)
    if known >= schema.VERSION:
        return
    for version in range(known + 1, schema.VERSION + 1):
        STEPS[version](connection)
    if known < DERIVED_SINCE:
        summaries.write_missing(connection, lambda run_id: _first_started(connection, run_id))
    connection.execute(update(schema.meta).where(schema.meta.c.key == "schema").values(value=str(schema.VERSION)))


_VERSION: Final = select(schema.meta.c.value).where(schema.meta.c.key == "schema")


def add_column(connection: Connection, column: Column[Any]) -> None:
    """Add a column to its table, unless it is there."""
    table = column.table.name
    if column.name not in {existing["name"] for existing in inspect(connection).get_columns(table)}:
        definition = CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")


def _first_started(connection: Connection, run_id: str) -> Started | None:
    events = schema.events.c
    query = (
        select(events.body)
        .where(events.run_id == run_id, events.body.startswith('{"kind":"started"', autoescape=True))
        .order_by(events.seq)
        .limit(1)
    )
    body = connection.scalar(query)
    try:
        event = None if body is None else parse_event(json.loads(body))
    except ValueError:  # damaged, or of a newer version: list the run without baselines
        return None
    return event if isinstance(event, Started) else None
