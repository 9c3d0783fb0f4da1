"""Experiments are named after what was launched."""

from __future__ import annotations

import pytest

from isoviz.operations.access.service import of_command_line
from isoviz.runs.naming import experiment_name
from isoviz.runs.store import Store
from tests.dashboard.made_up import config

PAIR = [config(), config("isobn")]


@pytest.mark.parametrize(
    ("configs", "name"),
    [
        ([*PAIR, config("istar")], "IsoBN, I-STAR against baseline on acceptability"),
        ([config("baseline", seed) for seed in range(3)], "Baseline on acceptability"),
        (
            [config(), *(config("istar", params={"lam": lam}) for lam in (-1, 1))],
            "I-STAR with 2 settings against baseline on acceptability",
        ),
        (
            [
                config(method, task=f"demo/{task}", model="my/encoder")
                for method in ("isobn", "istar", "cosreg", "flow", "batchnorm")
                for task in ("acceptability", "sentiment", "paraphrase")
            ],
            "5 methods on 3 tasks with encoder",
        ),
    ],
)
def test_the_name_says_what_is_compared(configs, name):
    assert experiment_name(configs) == name


def test_a_second_launch_of_the_same_runs_is_another_experiment(tmp_path):
    store = Store(tmp_path)
    service = of_command_line(store)
    launched = [service.launch(PAIR, group="IsoBN", new=True)[0] for _ in range(3)]
    assert [store.get(run).group for run in launched] == ["IsoBN", "IsoBN 2", "IsoBN 3"]
    assert store.get(service.launch(PAIR, group="IsoBN")[0]).group == "IsoBN"
    store.close()
