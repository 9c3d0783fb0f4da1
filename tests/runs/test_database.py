"""Where a store may be, and the errors otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoviz.errors import StoreError
from isoviz.home import home, store_url
from isoviz.runs.store import Store


def test_home_is_chosen_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "mine"))
    assert home() == tmp_path / "mine"
    assert store_url(None) == f"sqlite:///{(tmp_path / 'mine' / 'isoviz.db').as_posix()}"
    monkeypatch.delenv("ISOVIZ_HOME")
    assert home().name == "isoviz" and home().is_absolute()


def test_a_store_is_named_by_folder_or_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_url(tmp_path) == store_url(str(tmp_path)) == f"sqlite:///{tmp_path.as_posix()}/isoviz.db"
    assert store_url("postgresql://u@h/d") == "postgresql://u@h/d"
    monkeypatch.chdir(tmp_path)
    assert Store("deep/er").folder == tmp_path / "deep" / "er"
    assert Store(f"sqlite:///{tmp_path}/x/own.db").folder == tmp_path / "x"
    assert (tmp_path / "x" / "own.db").exists()


def test_sqlite_is_in_wal_mode_and_checks_foreign_keys(local: Store) -> None:
    with local._database.writing() as connection:
        for pragma, value in (("journal_mode", "wal"), ("foreign_keys", 1), ("busy_timeout", 10_000)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u@h/d", "cannot be 'mysql'"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("nonsense://", "cannot be 'nonsense'"),
        ("://", "not a database URL"),
    ],
)
def test_other_addresses_are_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Store(url)


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "isoviz.db").write_text("hello " * 1000)
    with pytest.raises(StoreError, match=r"isoviz\.db: file is not a database"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="cannot create the store's folder"):
        Store(tmp_path / "isoviz.db" / "store")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@127.0.0.1:1/d",  # no server there
        "postgresql://user:half@secret@127.0.0.1:1/d",
        "postgresql://user@127.0.0.1:1/d?Password=secret&sslPassword=secret",
    ],
)
def test_an_address_that_fails_is_named_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store(url)
    assert "secret" not in f"{caught.value} {caught.value.advice}"
