"""Only the store's account can read its database, secrets and folders, including those of older versions."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from isoviz.config import RunConfig
from isoviz.operations.access import links, uploads
from isoviz.runs.execution import execute
from isoviz.runs.recovery import slot_lock
from isoviz.runs.store import Store
from tests.runs import fake_training
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
    (run_id,) = store.create([RunConfig(params={"does": "finish"})])
    with slot_lock(store, "cpu"):
        execute(store, run_id, train=fake_training.train)
    store.hosts()
    uploads.save(store.folder, {"train": ("a.csv", b"text,label\na,1\nb,0\n")})
    Story(store).complete()
    links.read(store.folder)
    return store


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_closed(public: Path) -> None:
    store = filled(public / "above" / "store")
    assert mode(store.folder) == mode(store.folder.parent) == 0o700
    files = [path for path in store.folder.iterdir() if path.is_file() and path.name != ".create.lock"]
    assert {path.name for path in files} >= {"isoviz.db", "links.json"}
    assert {path.name: mode(path) for path in files} == {path.name: 0o600 for path in files}


def test_a_folder_of_someone_keeps_its_mode(public: Path) -> None:
    folder = public / "store"
    folder.mkdir(mode=0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing in it can be read, so there is nothing to say
        filled(folder).close()
    assert mode(folder) == 0o755
    inside = [path for path in folder.iterdir() if path.name[0] != "."]
    assert len(inside) > 3
    assert {path.name: mode(path) & 0o077 for path in inside} == {path.name: 0 for path in inside}


@pytest.mark.parametrize(("name", "its_mode"), [("isoviz.db", 0o644), (".", 0o777)])
def test_a_store_that_others_can_read_is_named_and_left_as_it_is(name: str, its_mode: int, public: Path) -> None:
    folder = public / "store"
    folder.mkdir(mode=0o755)
    filled(folder).close()
    (folder / name).chmod(its_mode)
    with pytest.warns(UserWarning) as told:
        Store(folder)
    assert len(told) == 1 and str(folder if name == "." else name) in str(told[0].message)
    assert f"chmod -R go-rwx {folder}" in str(told[0].message)
    assert mode(folder / name) == its_mode


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
