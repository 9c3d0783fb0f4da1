"""An experiment on the command line: its report, more seeds, and its place in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isoviz.__main__ import main
from isoviz.commands import train
from isoviz.config import RunConfig
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from tests.dashboard.made_up import config, finish

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A folder with an experiment of two settings and two seeds."""
    opened = Store(tmp_path / "store")
    for seed in (0, 1):
        finish(opened, config("baseline", seed), 0.5 + 0.0625 * seed, 0.25, group="my sweep")
        finish(opened, config("istar", seed, {"lam": 1}), 0.75, 0.5, group="my sweep")
    opened.close()
    return str(tmp_path / "store")


def test_every_setup_gets_the_same_new_seeds(store: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    launched: list[tuple[str, int]] = []

    def instead(
        store: Store, service: object, configs: Sequence[RunConfig], group: str | None, **rest: Any
    ) -> list[RunRow]:
        assert group == "my sweep"
        launched.extend((config.method, config.seed) for config in configs)
        return []

    monkeypatch.setattr(train, "launch_and_execute", instead)
    assert main(["runs", "add-seeds", "my sweep", "--count", "2", "--store", store]) == 0
    assert sorted(launched) == [("baseline", 2), ("baseline", 3), ("istar", 2), ("istar", 3)]
    assert "4 runs, seeds 2 to 3" in capsys.readouterr().err
