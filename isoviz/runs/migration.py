"""Stores of older versions, brought to the tables of this one when they are opened.

`STEPS` maps a version of the schema to what makes it of the one before: tables and columns only, each left alone where it is
there already, because a table that an earlier step makes is made as it is today. To add a column: add it to `schema`, raise
`schema.VERSION`, and add a step `lambda connection: add_column(connection, schema.TABLE.c.NAME)`; a column of a store that is not
empty needs a `server_default` or must be nullable. What is derived from runs is derived anew for all of them after the steps, if
the store is older than `DERIVED_SINCE`.
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
"""The version since when summaries are derived as they are today: raise it when that changes."""


def _summaries(connection: Connection) -> None:
    for table in (schema.setups, schema.summaries, schema.numbers):
        table.create(connection, checkfirst=True)
    if connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == schema.REVISION)) is None:
        connection.execute(schema.meta.insert().values(key=schema.REVISION, value="0"))


def _priorities(connection: Connection) -> None:
    add_column(connection, schema.runs.c.priority)
    connection.exec_driver_sql("DROP INDEX IF EXISTS isoviz_runs_queue")  # of the order by time alone
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
    """Bring a store to today's version, in one transaction that no other process upgrades it in. Nothing if it is there."""
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
    if column.name not in {known["name"] for known in inspect(connection).get_columns(table)}:
        words = CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {words}")


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
    except ValueError:  # damaged, or of a newer version: the list does without its baselines
        return None
    return event if isinstance(event, Started) else None
