"""Short runs of tiny models, and their events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.events import Event
from isoviz.metrics.record import Measurement
from isoviz.models.adapter import HeadedModel
from isoviz.training import measuring, processes, shrinkage
from isoviz.training.evaluation import EncodedSplits, Evaluator
from isoviz.training.heads import Head
from isoviz.training.loop import train
from tests import tiny


def config(
    model: Path | str,
    data: Path | str | None,
    method: str = "baseline",
    params: dict[str, Any] | None = None,
    *,
    kind: str = "classification",
    **changes: Any,
) -> RunConfig:
    """A run on one thread in float32; three epochs in batches of eight rows unless `changes` say otherwise."""
    values = {"epochs": 3, "learning_rate": 5e-3, "batch_size": 8, "threads": 1, "precision": "no"}
    values |= {"task": tiny.TASKS[kind], "data": None if data is None else str(data)} | changes
    return RunConfig.checked(
        model=str(model), method=method, params=methods.check_params(method, params or {}), **values
    )


def run(
    cfg: RunConfig, folder: Path, stop_when: Callable[[Event], bool] = lambda event: False, resume: bool = False
) -> list[Event]:
    """The events of a run that gets a stop request at the first event for which `stop_when` is true."""
    events: list[Event] = []
    reported: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        reported.extend([event] if stop_when(event) else [])

    train(cfg, emit, lambda: bool(reported), folder, resume)
    return events


def at_step(step: int) -> Callable[[Event], bool]:
    """That step, or a later one if it is not reported."""
    return lambda event: event.kind == "stepped" and event.step >= step


def measured(cfg: RunConfig, model: HeadedModel, head: Head) -> tuple[dict[str, float | None], Measurement]:
    """Metrics with the loss, and isotropy, of a model as after an epoch of that run."""
    processes.begin()
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    rows = EncodedSplits(tasks.load(head.task, cfg.data, cfg.direction, cfg.max_train, cfg.max_eval), head, cfg)
    head.prepare(model, rows.train)
    evaluator = Evaluator(model, head, rows, accelerator, lambda: None)
    validated = evaluator.validate(cfg.probe_size)
    answers = head.answers(rows.frame, rows.validation, validated.predictions)
    isotropy = measuring.measurement(validated, shrinkage.estimate(evaluator), model.output.weight)
    scores = head.evaluate(rows.frame, answers) | evaluator.extra_metrics()
    return {**scores, "loss": validated.loss}, isotropy


def of(events: list[Event], kind: str) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if event.kind == kind]
