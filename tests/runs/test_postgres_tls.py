"""A PostgreSQL store over TCP: encrypted, the server's name checked, the password in a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isoviz.__main__ import main
from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs.postgres_server import Server, installed

PASSWORD = "not-to-be-seen"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Server, int]]:
    """A server that takes no connection without encryption and password, and its port."""
    programs = installed()
    port = free_port()
    with Server(programs, port, PASSWORD) as started:
        started.create("runs")
        yield started, port


def test_a_store_over_tls_with_a_password_file(server, tmp_path, monkeypatch, capfd):
    started, port = server
    passwords = tmp_path / "passwords"
    passwords.write_text(f"localhost:{port}:runs:isoviz:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    url = f"postgresql://isoviz@localhost:{port}/runs?sslmode=verify-full&sslrootcert={started.certificate}"

    assert main(["runs", "list", "--store", url]) == 0
    store = Store(url)
    (run,) = store.create([RunConfig()])
    with store._database.reading() as connection:
        encrypted = connection.exec_driver_sql("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").scalar()
    assert encrypted
    again = Store(store.url)  # as a worker opens it
    assert again.claim("a worker", "cpu").id == run
    for opened in (store, again):
        opened.close()

    assert main(["runs", "list", "--store", url.replace("localhost", "127.0.0.1")]) == 2  # not the certificate's name
    assert main(["runs", "list", "--store", url.replace("verify-full", "disable")]) == 2
    assert PASSWORD not in "".join(capfd.readouterr())


def test_no_message_holds_the_password(server):
    _, port = server
    for url in (
        f"postgresql://isoviz:{PASSWORD}@localhost:{port}/nowhere",
        f"postgresql://isoviz@localhost:{port}/nowhere?password={PASSWORD}&sslpassword={PASSWORD}",
    ):
        with pytest.raises(StoreError, match="nowhere") as refused:
            Store(url)
        assert PASSWORD not in str(refused.value) + str(refused.value.advice)
