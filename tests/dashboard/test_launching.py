"""From a plan to runs: how many, how long."""

from __future__ import annotations

import pytest

from dashboard.shared import timing
from dashboard.train import launching
from dashboard.train.launching import Plan
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


def test_a_plan_without_tasks_is_refused() -> None:
    with pytest.raises(InputError, match="task: choose at least one"):
        launching.configs(plan(tasks=()))


def history(seconds: float, host: str | None = None, progress: RunProgress | None = None, **more: object) -> RunRow:
    times = {"started": 100.0, "ended": 100.0 + seconds}
    return row(f"{seconds}", config(**more), outcome=result(0.5, 0.5), host=host, progress=progress, **times)  # type: ignore[arg-type]


def test_estimate_scales_like_runs_by_epochs() -> None:
    past = [history(6.0, epochs=3), history(12.0, epochs=3), history(9.0, epochs=3)]
    assert timing.estimate([config(epochs=6, seed=9)], past) == timing.Estimate(18.0, 0, measured=3)  # type: ignore[arg-type]


def test_runs_of_another_machine_give_no_estimate_for_this_one() -> None:
    own = {"model": "my/encoder", "epochs": 3}
    past = [history(9.0, host=host_name(), **own), history(900.0, host="another", **own)]
    estimate = timing.estimate([config(**own)], past)  # type: ignore[arg-type]
    assert estimate == timing.Estimate(9.0, 0, measured=1)
    assert estimate.source(1) == "estimated from 1 earlier run on this machine"
    assert timing.estimate([config()], [], shipped=False) == timing.Estimate(0.0, 1)


def test_estimate_falls_back_to_the_same_model_and_size() -> None:
    own = {"model": "my/encoder", "epochs": 3}
    past = [history(6.0, **own, max_train=1000)]
    assert timing.estimate([config("isobn", **own, max_train=1000)], past).seconds == 6.0  # type: ignore[arg-type]
    unknown_rows = config("isobn", **own, task="glue/cola", data="folder")  # type: ignore[arg-type]
    assert timing.estimate([unknown_rows], past) == timing.Estimate(0.0, 1)


def test_a_first_estimate_comes_from_the_recording_that_ships_with_the_demo() -> None:
    from isoviz.demo import baselines

    record = baselines("demo/sentiment")
    same = config(task="demo/sentiment", epochs=record["recipe"]["epochs"])
    estimate = timing.estimate([same, config(model="my/encoder")], [])
    assert estimate.seconds == pytest.approx(record["pretrained"]["seconds"])
    assert (estimate.recorded, estimate.unknown) == (1, 1)
    assert timing.estimate([config(task="demo/translation", num_beams=4)], []).unknown == 1
    half = config(task="demo/sentiment", epochs=record["recipe"]["epochs"], max_train=1000)
    assert timing.estimate([half], []).seconds == pytest.approx(record["pretrained"]["seconds"] / 2)


def test_one_run_of_the_bundled_model_here_replaces_the_timings_of_the_other_machine() -> None:
    slow = history(1.0, task="demo/acceptability", epochs=1, max_length=48)
    recorded = timing.estimate([slow.config], []).seconds
    past = [history(3 * recorded, task="demo/acceptability", epochs=1, max_length=48)]
    other = config(task="demo/sentiment", batch_size=16)
    before, now = (timing.estimate([other], runs) for runs in ([], past))
    assert now.seconds == pytest.approx(3 * before.seconds)
    assert (before.recorded, before.measured, now.recorded, now.measured) == (1, 0, 0, 1)
    assert timing.estimate([other], past, shipped=False) == now


def test_runs_on_fewer_rows_are_scaled_by_their_rows() -> None:
    own = {"model": "my/encoder", "epochs": 3}
    past = [history(6.0, **own, max_train=1000)]
    for more in ({"max_train": 3000}, {}):  # the demo task has 3,000 rows
        assert timing.estimate([config(**own, **more)], past).seconds == pytest.approx(18.0)  # type: ignore[arg-type]


def test_resumed_and_failed_runs_tell_nothing_about_time() -> None:
    own = config(model="my/encoder")
    failed = row("r", own, "failed", started=0.0, ended=1.0)
    resumed = row("r", own, outcome=result(0.5, 0.5), started=0.0, ended=1.0, attempt=2)
    assert timing.estimate([own], [failed, resumed]).unknown == 1


def test_runs_of_other_work_tell_nothing_about_time() -> None:
    own = {"model": "my/encoder", "max_train": 1000, "epochs": 3}
    past = [history(6.0, **own)]
    others: tuple[dict[str, object], ...] = ({"num_beams": 8}, {"batch_size": 1}, {"threads": 4}, {"grad_accum": 8})
    assert timing.estimate([config(**own, **other) for other in others], past).unknown == 4  # type: ignore[arg-type]
    assert timing.estimate([config(**own, task="demo/summarization")], past).unknown == 1  # type: ignore[arg-type]


def test_a_run_that_stopped_early_counts_the_epochs_it_trained() -> None:
    past = [history(4.0, epochs=1000, progress=RunProgress(measured_epoch=2))]
    assert timing.estimate([config(epochs=10)], past).seconds == 20.0


def test_each_run_starts_in_the_slot_that_is_free_first() -> None:
    past = [history(6.0, epochs=3)]
    one = config(epochs=3)
    assert [timing.estimate([one] * 5, past, slots=slots).seconds for slots in (1, 2, 4)] == [30.0, 18.0, 12.0]
    assert timing.estimate([one], past, slots=4, busy=[3600.0]).seconds == 3600.0
    assert timing.estimate([one], past, slots=2, busy=[10.0, 20.0]).seconds == 20.0
    wide = [history(6.0, epochs=3, processes=2)]
    assert timing.estimate([config(epochs=3, processes=2)], wide, slots=2, busy=[10.0]).seconds == 16.0


def test_the_rest_of_running_runs_is_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_history", list)
    last = row("r", config(), "running", progress=RunProgress(eta_seconds=-0.4))
    assert timing.remaining([last]).words() == "unknown"


@pytest.mark.parametrize(
    ("estimate", "words"),
    [((40.0, 0), "about 40 s"), ((40.0, 1), "more than 40 s"), ((0.0, 3), "unknown")],
)
def test_duration_words(estimate: tuple[float, int], words: str) -> None:
    assert timing.Estimate(*estimate).words() == words
