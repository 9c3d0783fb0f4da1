"""From a plan to runs: how many, how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dashboard.shared import timing
from dashboard.train import launching
from dashboard.train.launching import Plan
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.runs.identity import host_name
from isoviz.runs.rows import RunProgress, RunRow
from tests.dashboard.made_up import config, result, row


def plan(**changes: object) -> Plan:
    values: dict[str, object] = {
        "models": ("demo/tiny-bert",),
        "tasks": (("demo/acceptability", None),),
        "methods": (("baseline", {}), ("istar", {"lam": (-1.0, 1.0), "zeta": (0.2, 0.8)})),
        "seeds": (0, 1, 2),
        "settings": {"precision": "no", "threads": 1},
    }
    return Plan(**{**values, **changes})  # type: ignore[arg-type]


def test_runs_are_counted_before_they_are_made() -> None:
    assert (plan().variants, plan().runs) == (5, 15)
    assert len(launching.configs(plan())) == 15


def test_too_many_runs_are_refused_before_anything_is_expanded() -> None:
    with pytest.raises(InputError, match="at most"):
        launching.configs(plan(seeds=tuple(range(10**6))))


def history(seconds: float, host: str | None = None, progress: RunProgress | None = None, **more: Any) -> RunRow:
    times = {"started": 100.0, "ended": 100.0 + seconds}
    return row(f"{seconds}", config(**more), outcome=result(0.5, 0.5), host=host, progress=progress, **times)


OWN: dict[str, Any] = {"model": "my/encoder", "epochs": 3}
ROWS_1000: dict[str, Any] = {**OWN, "max_train": 1000}
PAST = history(6.0, **ROWS_1000)
THREE = [history(6.0, epochs=3)]


@pytest.mark.parametrize(
    ("configs", "past", "options", "expected"),
    [
        ([config(epochs=6, seed=9)], [history(seconds, epochs=3) for seconds in (6.0, 12.0, 9.0)], {}, (18.0, 0)),
        ([config(**OWN)], [history(9.0, host_name(), **OWN), history(900.0, "another", **OWN)], {}, (9.0, 0)),
        ([config("isobn", **ROWS_1000)], [PAST], {}, (6.0, 0)),  # the same model and number of rows
        ([config("isobn", **OWN, task="glue/cola", data="folder")], [PAST], {}, (0.0, 1)),  # of unknown rows
        ([config(**OWN, max_train=3000)], [PAST], {}, (18.0, 0)),
        ([config(**OWN)], [PAST], {}, (18.0, 0)),  # the demo task has 3,000 rows
        ([config(**ROWS_1000, num_beams=8)], [PAST], {}, (0.0, 1)),
        ([config(**ROWS_1000, task="demo/summarization")], [PAST], {}, (0.0, 1)),
        ([config(**OWN)], [row("r", config(**OWN), "failed", started=0.0, ended=1.0)], {}, (0.0, 1)),
        ([config(**OWN)], [replace(history(6.0, **OWN), attempt=2)], {}, (0.0, 1)),  # resumed
        ([config(epochs=10)], [history(4.0, epochs=1000, progress=RunProgress(measured_epoch=2))], {}, (20.0, 0)),
        ([config(epochs=3)] * 5, THREE, {"slots": 1}, (30.0, 0)),
        ([config(epochs=3)] * 5, THREE, {"slots": 2}, (15.0, 0)),
        ([config(epochs=3, processes=2)], [history(6.0, epochs=3, processes=2)], {"slots": 2}, (6.0, 0)),
    ],
)
def test_estimates(
    configs: list[RunConfig], past: list[RunRow], options: dict[str, Any], expected: tuple[float, int]
) -> None:
    estimate = timing.estimate(configs, past, **options)
    assert (estimate.seconds, estimate.unknown) == (pytest.approx(expected[0]), expected[1])


def test_a_first_estimate_comes_from_the_recording_that_ships_with_the_demo() -> None:
    from isoviz.demo import baselines

    record = baselines("demo/sentiment")
    same = config(task="demo/sentiment", epochs=record["recipe"]["epochs"])
    estimate = timing.estimate([same, config(model="my/encoder")], [])
    assert estimate.seconds == pytest.approx(record["pretrained"]["seconds"])
    assert estimate.unknown == 1
    assert timing.estimate([config(task="demo/translation", num_beams=4)], []).unknown == 1
    half = config(task="demo/sentiment", epochs=record["recipe"]["epochs"], max_train=1000)
    assert timing.estimate([half], []).seconds == pytest.approx(record["pretrained"]["seconds"] / 2)
