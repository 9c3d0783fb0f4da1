"""`report_to`: a tracker's own files hold the numbers that the run's events report."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import Evaluated, Event, Measured, Stepped
from isoviz.runs import planning
from isoviz.training import tracking
from isoviz.training.loop import train
from tests.tiny import TinyModels


def test_tensorboard_reads_the_numbers_back(tmp_path: Path, tiny_models: TinyModels, cola: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = str(tiny_models("bert"))
    options = {"epochs": 2, "batch_size": 16, "report_to": "tensorboard"}
    (config,) = planning.expand([model], ["glue/cola"], [("istar", {})], [0], data=str(cola), **options)
    events: list[Event] = []
    train(config, events.append, lambda: False, tmp_path / "a-run")

    logged = EventAccumulator(str(tmp_path / "a-run" / tracking.FOLDER / tracking.PROJECT)).Reload()

    def values(tag: str) -> dict[int, float]:
        return {scalar.step: scalar.value for scalar in logged.Scalars(tag)}

    steps = [event for event in events if isinstance(event, Stepped)]
    evaluated = [event for event in events if isinstance(event, Evaluated)]
    measured = [event for event in events if isinstance(event, Measured)]
    assert values("loss/istar") == pytest.approx({step.step: step.losses["istar"] for step in steps}, rel=1e-6)
    assert values("validation/accuracy") == pytest.approx(
        {evaluation.step: evaluation.metrics["accuracy"] for evaluation in evaluated}
    )
    stars = {measurement.step: measurement.isotropy.number("isoscore_star") for measurement in measured}
    assert values("isotropy/isoscore_star") == pytest.approx(stars)


def test_off_by_default_and_the_same_setup_as_without(tmp_path: Path) -> None:
    plain = RunConfig()
    assert plain.report_to == "none"
    assert plain.setup_key() == plain.model_copy(update={"report_to": "wandb"}).setup_key()
    with tracking.reporting(plain, tmp_path, print) as emit:
        assert emit is print
    assert not list(tmp_path.iterdir())


def test_a_tracker_that_is_not_installed_is_refused_before_the_launch() -> None:
    with pytest.raises(InputError, match="run `pip install comet-ml`") as refused:
        planning.expand(["demo/tiny-bert"], ["demo/acceptability"], [("baseline", {})], [0], report_to="comet_ml")
    assert refused.value.field == "report_to"


def test_a_tracker_that_stops_answering_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Unreachable:
        def log(self, values: dict[str, float], step: int) -> None:
            calls.append("log")
            raise ConnectionError("no route")

        def finish(self) -> None:
            calls.append("finish")

    monkeypatch.setattr(tracking, "_started", lambda config, run_dir: Unreachable())
    events: list[object] = []
    stepped = Stepped(
        step=1, epoch=0.1, losses={"task": 1.0, "total": 1.0}, learning_rate=1e-4, samples_per_second=1, eta_seconds=0
    )
    with tracking.reporting(RunConfig().model_copy(update={"report_to": "wandb"}), tmp_path, events.append) as emit:
        emit(stepped)
        emit(stepped)
    assert events == [stepped, stepped] and calls == ["log"]
