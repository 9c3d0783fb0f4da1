"""Only the store's account can read its database, secrets and folders, including those of older versions."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard import tokens
from isoviz.access import links
from isoviz.home import make_private
from isoviz.runs.store import Store
from tests.story import Story

NOBODY = 65534


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every account can reach; pytest's own are closed from the top."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        before = os.umask(0o022)
        try:
            yield Path(folder)
        finally:
            os.umask(before)


def filled(folder: Path) -> Store:
    store = Store(folder)
    Story(store).complete()
    links.read(store.folder)
    tokens.issue(store.folder, [])
    return store


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_closed(public: Path) -> None:
    store = filled(public / "above" / "store")
    assert mode(store.folder) == mode(store.folder.parent) == 0o700
    files = [path for path in store.folder.iterdir() if path.is_file() and path.name != ".create.lock"]
    assert {path.name for path in files} >= {"isoviz.db", "links.json", "token.key"}
    assert {path.name: mode(path) for path in files} == {path.name: 0o600 for path in files}


def test_a_store_that_was_open_is_closed_when_it_is_opened(public: Path) -> None:
    folder = public / "store"
    filled(folder).close()
    loose = [folder, *folder.glob("isoviz.db*")]
    for path in loose:
        path.chmod(0o755 if path.is_dir() else 0o644)
    Store(folder)
    assert all(mode(path) & 0o077 == 0 for path in [folder, *folder.glob("isoviz.db*")])


def test_files_of_other_users_keep_their_mode(public: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the rights to give a folder away")
    folder = public / "theirs"
    folder.mkdir(mode=0o755)
    os.chown(folder, NOBODY, NOBODY)
    make_private(folder)
    assert mode(folder) == 0o755


def test_another_account_reads_nothing(public: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the rights to become another account")
    store = filled(public / "store")
    targets = [store.folder, *store.folder.rglob("*")]
    assert len(targets) > 5
    script = (
        "import os, sys\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "assert os.listdir(sys.argv[1])\n"  # up to the store it gets
        "for path in sys.argv[2:]:\n"
        "    try:\n"
        "        os.listdir(path) if path == sys.argv[2] else open(path).read()\n"
        "    except PermissionError:\n"
        "        continue\n"
        "    print('read', path)\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(public), *map(str, targets)], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
