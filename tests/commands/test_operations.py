"""The operations for agents and programs: who may call them, and how often they ask the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from isoviz.config import RunConfig
from isoviz.errors import AccessError
from isoviz.operations.access.policy import UNRESTRICTED
from isoviz.operations.access.service import Service
from isoviz.operations.access.visitors import OPERATOR, Role, Visitor
from isoviz.operations.table import Operations
from isoviz.runs.store import Store


def statements(store: Store, call: Callable[[], Any]) -> int:
    """How many SQL statements a call sends."""
    sent: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        sent.append(statement)

    event.listen(store._database.engine, "before_cursor_execute", note)
    try:
        call()
    finally:
        event.remove(store._database.engine, "before_cursor_execute", note)
    return len(sent)


def test_listing_more_runs_takes_no_more_queries(store: Store) -> None:
    do = Operations(store, Service(store, OPERATOR, UNRESTRICTED))
    ids = store.create([RunConfig(seed=seed) for seed in range(2)])
    few = statements(store, do.list_runs)
    ids += store.create([RunConfig(seed=seed) for seed in range(2, 12)])
    assert statements(store, do.list_runs) == few
    assert [run["id"] for run in do.list_runs()["runs"]] == ids[::-1]
    assert [run["id"] for run in do.list_runs(status="queued", limit=3)["runs"]] == ids[:-4:-1]


@pytest.mark.parametrize(
    "call",
    [
        lambda do, run: do.launch_runs(["no such method"]),
        lambda do, run: do.stop_run(run),
        lambda do, run: do.resume_run(run),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_viewer_is_refused_before_anything_else(store: Store, call: Callable[..., Any], known: bool) -> None:
    (run,) = store.create([RunConfig()])
    store.request_stop(run)
    do = Operations(store, Service(store, Visitor("lena", Role.VIEWER), UNRESTRICTED))
    with pytest.raises(AccessError):
        call(do, run if known else "no-such-run")
