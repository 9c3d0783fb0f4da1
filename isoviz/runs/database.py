"""Opening the store's database: SQLite in a local folder, or PostgreSQL by URL."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import sqlalchemy as sa
from filelock import FileLock

from isoviz import input_validation
from isoviz.errors import StoreError, install, listed
from isoviz.home import exposed, home, make_private
from isoviz.runs import schema
from isoviz.runs.identity import host_name

BUSY_SECONDS: Final = 10.0
_HOSTS_SECONDS: Final = 30.0

_SECRETS: Final = ("password", "sslpassword")
"""Parameters of a PostgreSQL URL that are always hidden."""
_ADVICE_READ_ONLY: Final = (
    "The store is read-only for this account. Copy its folder, or use an account that may write to it."
)


class StoreUnavailableError(StoreError):
    """The database is currently unavailable: disk full, locked for too long, or server down. It may recover."""


class Database:
    """A database and its folder of artifacts. Thread-safe, but not across a fork.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`.

    Raises:
        StoreError: an unsupported URL, a database that cannot be opened, a missing driver, or a
            store written by a newer IsoViz.
    """

    def __init__(self, url: str) -> None:
        self._url = _parse(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.folder = Path(str(self._url.database)).absolute().parent if self.is_sqlite else home()
        self._make_files()
        self._hosts = [host_name()]
        self._hosts_due = 0.0
        self.engine = _engine(self._url)
        # Reads are single statements outside transactions: they see the last commit and take no lock.
        if self.is_sqlite:
            self._reading: sa.Engine = self.engine.execution_options(no_begin=True)
        else:
            self._reading = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._prepare()
        except (StoreUnavailableError, sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
            self.engine.dispose()
            places = (self.folder, Path(str(self._url.database))) if self.is_sqlite else ()
            advice = None if all(os.access(place, os.W_OK) for place in places) else _ADVICE_READ_ONLY
            raise StoreError(f"cannot open the store {self}: {reason(error)}", advice=advice) from error

    def __str__(self) -> str:
        if self.is_sqlite:
            return str(self._url.database)
        secrets = [name for name in self._url.query if name.lower() in _SECRETS]
        return self._url.difference_update_query(secrets).render_as_string(hide_password=True)

    @property
    def url(self) -> str:
        """The URL with its password, for workers; never display it."""
        return self._url.render_as_string(hide_password=False)

    @property
    def has_password(self) -> bool:
        """Whether the URL contains a password."""
        return self._url.password is not None or any(name in self._url.query for name in _SECRETS)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection whose every statement sees the last commit. Raises `StoreUnavailableError`."""
        with self._explained("read"), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction. In SQLite, it holds the write lock from its first statement, so it never needs a retry.

        Raises `StoreUnavailableError` after a rollback.
        """
        with self._explained("written"), self.engine.begin() as connection:
            yield connection

    def hosts(self) -> list[str]:
        """The machines that use this folder of artifacts, including this one: a cluster's nodes may share it."""
        if time.monotonic() >= self._hosts_due:
            self._hosts_due = time.monotonic() + _HOSTS_SECONDS
            with suppress(OSError):  # then only this machine
                hosts_folder = self.folder / "hosts"
                make_private(hosts_folder)
                (hosts_folder / quote(host_name(), safe="")).touch()
                self._hosts = [unquote(file.name) for file in hosts_folder.iterdir()]
        return self._hosts

    def now(self) -> sa.ColumnElement[float]:
        """The current time by one clock for all hosts: the server's in PostgreSQL, this machine's in SQLite."""
        if self.is_sqlite:
            return sa.literal(time.time())
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (sa.exc.IntegrityError, sa.exc.ProgrammingError):
            raise
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            raise StoreUnavailableError(f"the store {self} cannot be {verb}: {reason(error)}") from error

    def _make_files(self) -> None:
        """Create the folder and the database's file for this account only. What exists keeps its mode, and is not opened if it is
        no database."""
        try:
            make_private(self.folder)
            if self.is_sqlite:
                file = Path(str(self._url.database))
                with suppress(FileExistsError):
                    os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))  # SQLite gives the mode to its other files
        except OSError as error:
            problem = f"{error.filename} is not a folder" if isinstance(error, FileExistsError) else error.strerror
            raise StoreError(f"cannot create the store's folder {self.folder}: {problem or error}") from error
        shared: list[str] = []
        with suppress(OSError):  # a file has just been removed
            shared = exposed(self.folder)
        if shared:
            close = f"chmod -R go-rwx {shlex.quote(str(self.folder))}"
            warnings.warn(f"other accounts can read or change {listed(shared)}; to prevent that: {close}", stacklevel=2)

    def _prepare(self) -> None:
        with self.reading() as connection:
            known = sa.inspect(connection).has_table(schema.meta.name)
        if not known:
            self._create()
        with self.reading() as connection:
            meta = {row.key: row.value for row in connection.execute(sa.select(schema.meta))}
        version = meta.get(schema.SCHEMA, "")
        if not version.isdigit():
            raise StoreError(f"the store {self} has no schema version: it was not made by IsoViz")
        if int(version) > schema.VERSION:
            raise StoreError(
                f"the store {self} was written by a newer IsoViz (schema {version}; this one supports up to {schema.VERSION})",
                advice="Update IsoViz, or choose another store with --store.",
            )

    def _create(self) -> None:
        """Create the tables; if several processes start together, one does and the others wait."""
        if self.is_sqlite:
            # waits longer than a database lock
            with FileLock(self.folder / ".create.lock", timeout=300):
                with closing(sqlite3.connect(str(self._url.database), timeout=BUSY_SECONDS)) as raw:
                    raw.execute("PRAGMA journal_mode = WAL")  # stored in the file; cannot be set inside a transaction
                self._create_tables()
        else:
            self._create_tables()

    def _create_tables(self) -> None:
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(0x150715)))
            schema.metadata.create_all(connection)
            if connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == schema.SCHEMA)) is None:
                connection.execute(schema.meta.insert().values(key=schema.SCHEMA, value=str(schema.VERSION)))
                connection.execute(schema.meta.insert().values(key=schema.REVISION, value="0"))


class SealedDatabase:
    """An immutable SQLite file, opened without locks and extra files, so it may be in a read-only folder.

    Args:
        file: path of the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.folder = file.parent
        database = f"file:{quote(str(file.absolute()))}"
        address = sa.URL.create("sqlite", database=database, query={"mode": "ro", "immutable": "1", "uri": "true"})
        self._engine = sa.create_engine(address, isolation_level="AUTOCOMMIT", pool_size=4, max_overflow=16)

    def __str__(self) -> str:
        return str(self.file)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection. Raises `StoreUnavailableError`."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise StoreUnavailableError(f"{self.file} cannot be read: {reason(error)}") from error


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # ValueError: an invalid port
        raise StoreError("the store's address is not a database URL", advice="Use a folder or postgresql://…") from None
    if "@" in (parsed.host or ""):  # the second half of a password, which must not be shown
        raise StoreError("the store's address has more than one @", advice="Write an @ in a password as %40.")
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        if importlib.util.find_spec("psycopg") is None:
            raise StoreError("a PostgreSQL store needs the package psycopg", advice=install("postgres"))
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
            raise StoreError("a SQLite store must be a file, because workers are separate processes: sqlite:///FILE")
        file = input_validation.path(str(parsed.database), "store")
        return parsed.set(drivername="sqlite+pysqlite", database=str(file))
    raise StoreError(f"a store cannot be '{parsed.drivername}' (allowed: a folder, sqlite:///FILE, postgresql://…)")


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        # Connections are tested before use, so that a restarted server does not fail a run.
        return sa.create_engine(url, pool_pre_ping=True, pool_size=4, max_overflow=16)
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS}, pool_size=4, max_overflow=16)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: Any) -> None:
        # Otherwise the driver would start transactions itself, late and without the write lock.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        # In WAL mode, NORMAL loses nothing if a process dies; a power cut may lose the last moments, but not consistency.
        connection.execute("PRAGMA synchronous = NORMAL")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get("no_begin"):
            # A deferred transaction that reads and then writes fails immediately if another one wrote in between.
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def reason(error: BaseException) -> str:
    """The driver's message in one line, without the statement."""
    if isinstance(error, StoreUnavailableError) and error.__cause__ is not None:
        error = error.__cause__
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) and error.orig is not None else error
    return " ".join(str(cause).split()) or type(cause).__name__
