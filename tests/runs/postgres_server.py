"""A PostgreSQL server of the tests' own, which no port that others may take can keep from starting."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.missing import missing
from tests.runs.observing import PATIENCE, kill_family

Address = Callable[[str], str]
"""The URL of one of the server's databases by its name."""


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None where PostgreSQL is not installed."""
    initdb = shutil.which("initdb")
    candidates = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)
    for path in [initdb, *candidates]:
        if path is not None:
            return Path(path).resolve().parent
    return None


def installed() -> Path:
    """`binaries`, or the test is skipped, or fails in CI."""
    programs = binaries()
    if programs is None:
        missing("PostgreSQL's initdb was not found (PATH, /usr/lib/postgresql/*/bin)")
    return programs


@contextmanager
def served(programs: Path) -> Iterator[Address]:
    """A server that lives for this context. It listens on a socket in its own folder: a free port could be taken."""
    with Server(programs) as server:
        yield server.address


class Server:
    """A server with a temporary folder.

    Args:
        programs: folder of the PostgreSQL programs.
        port: it listens there on the loopback, too, and its addresses say so.
        password: on that port it takes only encrypted connections with this password, and only its socket is open to all.
        connections: at most.
    """

    def __init__(
        self, programs: Path, port: int | None = None, password: str | None = None, connections: int = 100
    ) -> None:
        # PostgreSQL refuses to be run by root; its Debian package makes a user for it.
        self._user = "postgres" if hasattr(os, "geteuid") and os.geteuid() == 0 else None
        self._programs = programs
        self._port = port
        self._password = password
        self._connections = connections
        self._folder = Path(tempfile.mkdtemp(prefix="isoviz-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        made = subprocess.run(
            [self._programs / "initdb", "-D", self._folder / "data", "-U", "isoviz", "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync"],
            user=self._user, cwd=self._folder, capture_output=True, text=True,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        if self._password is not None:
            self._encrypt()
        self.start()
        if self._password is not None:
            import psycopg

            with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
                connection.execute(psycopg.sql.SQL("ALTER USER isoviz PASSWORD {}").format(self._password))
        return self

    @property
    def certificate(self) -> Path:
        """A self-signed certificate for `localhost`."""
        return self._folder / "server.crt"

    def _encrypt(self) -> None:
        key = self._folder / "server.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.certificate,
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
            check=True, capture_output=True,
        )  # fmt: skip
        key.chmod(0o600)
        if self._user is not None:
            shutil.chown(key, self._user)
        rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        (self._folder / "data" / "pg_hba.conf").write_text(rules)
        with (self._folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(f"ssl = on\nssl_cert_file = '{self.certificate}'\nssl_key_file = '{key}'\n")

    def __exit__(self, *details: object) -> None:
        if self._process is not None:
            _end(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers; after a crash it first recovers."""
        listening = f"listen_addresses={'127.0.0.1' if self._port else ''}"
        port = ["-p", str(self._port)] if self._port else []
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", "-k", self._folder, "-c", listening, *port,
                 "-c", "fsync=off", "-c", f"max_connections={self._connections}"],
                user=self._user, cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        _wait_for(self.address("postgres"), self._process, self._folder / "log")

    def crash(self) -> None:
        """All of its processes are gone this moment, as when the machine had lost its power."""
        assert self._process is not None
        kill_family(self._process)

    def address(self, database: str) -> str:
        """The URL of one of its databases."""
        if self._port and self._password is None:
            return f"postgresql://isoviz@127.0.0.1:{self._port}/{database}"
        port = f"&port={self._port}" if self._port else ""
        return f"postgresql://isoviz@/{database}?host={quote(str(self._folder), safe='')}{port}"

    def create(self, database: str) -> str:
        """Make a database; its URL."""
        import psycopg

        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        return self.address(database)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    begin = time.monotonic()
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError as error:
            assert server.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() - begin < PATIENCE, f"{error}\n{log.read_text(errors='replace')}"
            time.sleep(0.1)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Fast: the connections that are still open are closed, not waited for."""
    server.send_signal(signal.SIGINT)
    try:
        server.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
