"""From choices to runs: the expansion, refusals before any run exists, and the equivalent command."""

from __future__ import annotations

import shlex

import pytest

from isoviz.__main__ import build_parser
from isoviz.commands.options import request_of
from isoviz.commands.train import plan
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.runs import planning
from isoviz.runs.planning import more_seeds

COMMON = {"models": ["demo/tiny-bert"], "tasks": ["demo/acceptability"], "methods": [("baseline", {})], "seeds": [0]}


def expand(**changes):
    return planning.expand(**{**COMMON, **changes})


def test_product_and_its_order():
    configs = expand(
        tasks=["demo/acceptability", "demo/sentiment"],
        methods=[("baseline", {}), ("istar", {"lam": [-1, 1], "zeta": [0.2, 0.8]})],
        seeds=[0, 1],
    )
    assert len(configs) == 2 * (1 + 4) * 2
    first = [(c.task, c.seed, c.method, c.params.get("lam"), c.params.get("zeta")) for c in configs[:6]]
    assert first == [
        ("demo/acceptability", 0, "baseline", None, None),
        ("demo/acceptability", 0, "istar", -1.0, 0.2),
        ("demo/acceptability", 0, "istar", -1.0, 0.8),
        ("demo/acceptability", 0, "istar", 1.0, 0.2),
        ("demo/acceptability", 0, "istar", 1.0, 0.8),
        ("demo/acceptability", 1, "baseline", None, None),
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"models": []}, "model"),
        ({"tasks": []}, "task"),
        ({"methods": []}, "method"),
        ({"seeds": []}, "seed"),
        ({"seeds": [0, 0]}, "seed"),
        ({"seeds": [-1]}, "seed"),
        ({"models": ["demo/none"]}, "model"),
        ({"tasks": ["demo/none"]}, "task"),
        ({"methods": [("none", {})]}, "method"),
        ({"methods": [("istar", {"zeta": [0.2, 2]})]}, "params.zeta"),
        ({"methods": [("istar", {"lam": []})]}, "params.lam"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": 2.0}, "learning_rate"),
        ({"max_length": 4096}, "max_length"),
        ({"early_stopping": "accuracy"}, "early_stopping"),
        ({"early_stopping": "bleu:3"}, "early_stopping"),
        ({"tasks": ["glue/cola"], "data": "/no/such/folder"}, "data"),
        ({"seeds": list(range(3000))}, "method"),
        ({"methods": [("istar", {"lam": list(range(10**5)), "zeta": [0.1] * 10**5})]}, "method"),
    ],
)
def test_refusals_name_their_field(changes, field):
    with pytest.raises(InputError) as caught:
        expand(**changes)
    assert caught.value.field == field


def test_runs_for_other_machines_need_no_devices_here(monkeypatch):
    devices = planning.devices
    one_core = devices.Devices((devices.Slot("cpu", "CPU", 0),), bf16=False, cores=1)
    monkeypatch.setattr(devices, "describe", lambda: one_core)
    (queued,) = expand(precision="fp16", processes=4, trains_here=False)
    assert (queued.precision, queued.processes) == ("fp16", 4)
    with pytest.raises(InputError, match="has 1 core"):
        expand(processes=4)


def test_data_folder_is_stored_absolute_and_for_file_tasks_only(cola, monkeypatch):
    monkeypatch.chdir(cola.parent)
    configs = expand(tasks=["glue/cola", "demo/sentiment"], data="cola")
    assert [c.data for c in configs] == [str(cola), None]


def test_a_changed_file_is_read_again(cola):
    expand(tasks=["glue/cola"], data=str(cola))
    (cola / "train.parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match=r"train.parquet' is not Parquet: its content is text"):
        expand(tasks=["glue/cola"], data=str(cola))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seeds": [0, 1, 2], "epochs": 7, "max_train": 100},
        {"methods": [("istar", {"lam": [-1, 0.5, 1], "zeta": [0.2, 0.8]})]},
        {"methods": [("baseline", {}), ("isobn", {"beta": 0.25, "form": "code"})], "early_stopping": "accuracy:2"},
    ],
)
def test_the_command_starts_the_same_runs(changes):
    configs = expand(**changes)
    lines = planning.command(configs).splitlines()
    again = []
    for line in lines:
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "isoviz"]
        again += plan(request_of(build_parser().parse_args(words[3:])))
    key = lambda config: config.model_dump_json()  # noqa: E731
    assert sorted(again, key=key) == sorted(configs, key=key)


def test_every_setup_gets_the_same_new_seeds() -> None:
    plain = RunConfig(method="baseline", params={})
    other = plain.model_copy(update={"epochs": 7})
    existing = [plain.model_copy(update={"seed": seed}) for seed in (0, 4)] + [
        other,
        other.model_copy(update={"seed": 1}),
    ]
    more = more_seeds(existing, 3)
    assert [(config.epochs, config.seed) for config in more] == [
        (epochs, seed) for seed in (5, 6, 7) for epochs in (plain.epochs, 7)
    ]
    setups = {config.setup_key() for config in existing}
    assert {config.setup_key() for config in more} == setups
    assert not {(c.setup_key(), c.seed) for c in more} & {(c.setup_key(), c.seed) for c in existing}
    threads = plain.model_copy(update={"threads": plain.threads + 1, "seed": 1})
    assert len(more_seeds([plain, threads], 3)) == 3, "threads do not make another setup"
    assert more_seeds([], 3) == []
