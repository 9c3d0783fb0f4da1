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

from tests.runs.observing import PATIENCE

Address = Callable[[str], str]
"""The URL of one of the server's databases by its name."""


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None where PostgreSQL is not installed."""
    found = shutil.which("initdb")
    candidates = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)
    for path in [found, *candidates]:
        if path is not None:
            return Path(path).resolve().parent
    return None


@contextmanager
def served(programs: Path) -> Iterator[Address]:
    """A server that lives for this context. It listens on a socket in a folder of its own: free ports are raced for."""
    # PostgreSQL refuses to be run by root; its Debian package makes a user for it.
    user = "postgres" if hasattr(os, "geteuid") and os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="isoviz-pg-"))
    if user is not None:
        shutil.chown(folder, user)
    try:
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "isoviz", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            user=user, cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
                user=user, cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            address = _address(folder)
            _wait_for(address("postgres"), server, folder / "log")
            yield address
        finally:
            _end(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _address(folder: Path) -> Address:
    return lambda database: f"postgresql://isoviz@/{database}?host={quote(str(folder), safe='')}"


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
