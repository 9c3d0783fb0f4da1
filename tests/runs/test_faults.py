"""Runs under faults, a few of each kind; `benchmarks/faults.py` does them in full."""

from __future__ import annotations

import random
from typing import Any

import pytest

from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs import faults
from tests.runs.observing import posix
from tests.runs.postgres_server import Server, installed

pytestmark = [posix, pytest.mark.slow]

METHOD = "istar"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What an undisturbed run reports."""
    return faults.undisturbed(faults.config(METHOD), tmp_path_factory.mktemp("whole"))


@pytest.mark.nightly
def test_killed_command_is_resumed_at_once_to_the_same_numbers(local, expected):
    outcome = faults.killed_commands(local, METHOD, 1, expected, random.Random(1))
    assert outcome.same and outcome.faults, outcome


@pytest.mark.parametrize("with_worker", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_killed_apps_and_workers_cost_no_number(local, expected, with_worker):
    outcome = faults.killed_app(local, METHOD, expected, random.Random(1), with_worker=with_worker)
    assert outcome.same and outcome.faults, outcome


@pytest.mark.nightly
def test_crashed_server_costs_no_event(expected):
    with Server(installed(), free_port()) as server:
        store = Store(server.create("faults"))
        outcome = faults.crashed_server(server, store, METHOD, expected, random.Random(1))
        store.close()
    assert outcome.same and outcome.faults, outcome


def test_two_apps_and_four_workers_share_a_queue(store, tmp_path):
    counts = faults.share_queue(store, 30, tmp_path)
    assert counts["owners"] >= 2
    assert (counts["finished"], counts["lost"], counts["doubled"]) == (30, 0, 0)
