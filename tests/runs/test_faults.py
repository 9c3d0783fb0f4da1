"""Runs under faults, a few of each kind; `benchmarks/faults.py` does them in full."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs import faults
from tests.runs.observing import posix
from tests.runs.postgres_server import Server, installed

pytestmark = [posix, pytest.mark.slow]


def test_killed_commands_are_resumed_at_once_to_the_same_numbers(local: Store, tmp_path: Path) -> None:
    expected = faults.undisturbed(faults.config("istar"), tmp_path / "whole")
    outcome = faults.killed_commands(local, "istar", 2, expected, random.Random(1))
    assert outcome.same and outcome.faults, outcome


def test_killed_workers_and_apps_cost_no_number(local: Store, tmp_path: Path) -> None:
    expected = faults.undisturbed(faults.config("isobn"), tmp_path / "whole")
    for with_worker in (False, True):
        outcome = faults.killed_app(local, "isobn", expected, random.Random(1), with_worker=with_worker)
        assert outcome.same and outcome.faults, outcome


def test_crashed_server_costs_no_event(tmp_path: Path) -> None:
    programs = installed()
    expected = faults.undisturbed(faults.config("baseline"), tmp_path / "whole")
    with Server(programs, free_port()) as server:
        store = Store(server.create("faults"))
        outcome = faults.crashed_server(server, store, "baseline", expected, random.Random(1))
        store.close()
    assert outcome.same and outcome.faults, outcome


def test_two_apps_and_four_workers_share_a_queue(store: Store, tmp_path: Path) -> None:
    counts = faults.share_queue(store, 60, tmp_path)
    assert counts["owners"] >= 2
    assert (counts["finished"], counts["lost"], counts["doubled"]) == (60, 0, 0)
