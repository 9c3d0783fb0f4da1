"""What every store promises, on SQLite and on PostgreSQL: runs come, are found, changed and deleted."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from isoviz.errors import InputError, StoreError
from isoviz.runs import schema
from isoviz.runs.store import Store
from tests.runs.conftest import Make
from tests.runs.observing import PATIENCE
from tests.runs.reports import FAILED, begun, step


def test_a_created_run_comes_back_as_it_was(store: Store, config: Make) -> None:
    created = config(seed=7, learning_rate=3e-4, params={"lam": -1.0, "form": "paper", "on": True, "k": 3})
    before = time.time()
    (run_id,) = store.create([created], group="sweep", name="  my\n run ")
    row = store.get(run_id)
    assert row.config == created
    assert [type(v) for v in row.config.params.values()] == [float, str, bool, int]
    assert (row.status, row.group, row.name, row.position) == ("queued", "sweep", "my run", 1)
    assert before - 1 <= row.created <= time.time() + 1
    assert (row.started, row.ended, row.result, row.error, row.progress, row.resume) == (None,) * 5 + (False,)
    assert not store.signals(run_id).stop


def test_ids_sort_by_creation_and_lists_page(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(5)], group="a") + store.create([config(seed=9)])
    assert ids == sorted(set(ids))
    assert [row.id for row in store.list()] == ids[::-1]
    assert [row.id for row in store.list(order="oldest", limit=2)] == ids[:2]
    assert [row.id for row in store.list(group="a", order="queue")] == ids[:5]
    assert [row.config.seed for row in store.list(order="oldest")] == [0, 1, 2, 3, 4, 9]
    assert [row.position for row in store.list(order="oldest")] == [1, 2, 3, 4, 5, 6]
    assert store.list(status=["failed", "lost"]) == []
    with pytest.raises(InputError, match="unknown status 'done'"):
        store.list(status="done")


def test_deleting_takes_events_and_files(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [step(1)])
    folder = store.folder_of(run_id)
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"x" * 1000)
    assert store.disk_use(run_id) == 1000
    with pytest.raises(StoreError, match="is running: stop it"):
        store.delete(run_id)
    assert folder.exists()
    store.append(run_id, [FAILED])
    store.delete(run_id)
    assert not folder.exists()
    assert store.list() == []
    with store._database.reading() as connection:
        assert connection.execute(select(schema.events)).all() == []


def test_names_tags_and_notes(store: Store, config: Make) -> None:
    (run_id,) = store.create([config()])
    store.rename(run_id, "λ = 1 ★")
    store.tag(run_id, ["b", "a", "b"])
    store.note(run_id, "first\nsecond")
    row = store.get(run_id)
    assert (row.name, row.tags, row.note) == ("λ = 1 ★", ("b", "a"), "first\nsecond")
    for bad in ("", "  ", "x" * 201):
        with pytest.raises(InputError, match="1 to 200 characters"):
            store.rename(run_id, bad)


def test_an_unknown_id_is_named(store: Store) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.get("abc"),
        lambda: store.events("abc"),
        lambda: store.append("abc", [FAILED]),
        lambda: store.request_stop("abc"),
        lambda: store.signals("abc").stop,
        lambda: store.delete("abc"),
        lambda: store.folder_of("../../etc"),
        lambda: store.set_worker("abc", 1, 1.0),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"no run '(abc|\.\./\.\./etc)' in the store"):
            call()


def test_a_newer_schema_is_refused(store: Store, store_url: str) -> None:
    with store._database.writing() as connection:
        connection.execute(update(schema.meta).values(value=str(schema.VERSION + 1)))
    with pytest.raises(StoreError, match="written by a newer IsoViz") as caught:
        Store(store_url)
    assert "Update IsoViz" in str(caught.value.advice)


def test_many_may_open_a_new_store_at_once(store_url: str) -> None:
    code = "import sys; from isoviz.runs.store import Store; print(Store(sys.argv[1]).counts()['queued'])"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, store_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in processes:
        out, errors = process.communicate(timeout=PATIENCE)
        assert out == "0\n", errors
