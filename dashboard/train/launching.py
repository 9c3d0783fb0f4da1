"""From a filled form to queued runs: how many, about how long, on what; the same as a command; launch. No widgets here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.demo import bundled_models, recorded_pace
from isoviz.errors import InputError
from isoviz.runs import planning
from isoviz.runs.rows import RunRow
from isoviz.tasks.protocol import OwnTask


@dataclass(frozen=True)
class Plan:
    """What the form asks for.

    Attributes:
        models: names.
        tasks: (slug, data folder or None).
        methods: (slug, parameter → values).
        seeds: one run each.
        settings: common training settings; a missing one has its default.
        own: columns of the task `own`.
        directions: slug → direction, of tasks that translate.
    """

    models: tuple[str, ...]
    tasks: tuple[tuple[str, str | None], ...]
    methods: tuple[tuple[str, Mapping[str, tuple[Any, ...]]], ...]
    seeds: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    own: OwnTask | None = None
    directions: Mapping[str, str] = field(default_factory=dict)

    @property
    def variants(self) -> int:
        """Methods, each counted once per combination of its parameters' values."""
        return sum(prod(len(values) for values in params.values()) for _, params in self.methods)

    @property
    def runs(self) -> int:
        """How many runs this makes."""
        return len(self.models) * len(self.tasks) * self.variants * len(self.seeds)


def configs(plan: Plan, checks: planning.DataChecks = planning.IN_THIS_PROCESS) -> list[RunConfig]:
    """All runs of a plan, checked and resolved; `InputError` names the first field at fault. `checks`: who reads the files.

    Data folder, columns and direction belong to a task, so tasks are expanded one by one.
    """
    if plan.runs > planning.MAX_RUNS:
        raise InputError(
            f"method: this would launch {plan.runs} runs (at most {planning.MAX_RUNS} at once)", field="method"
        )
    if not plan.tasks:
        raise InputError("task: choose at least one", field="task")
    choices = [(slug, {name: list(values) for name, values in params.items()}) for slug, params in plan.methods]
    settings = dict(plan.settings)
    if settings.get("doc_stride") == RunConfig.model_fields["doc_stride"].default:
        del settings["doc_stride"]  # left alone in the form: short inputs get a shorter one
    configs: list[RunConfig] = []
    for task, data in plan.tasks:
        own = plan.own if task == tasks.OWN else None
        direction = plan.directions.get(task)
        configs += planning.expand(
            plan.models, [task], choices, plan.seeds, data=data, own=own, direction=direction, checks=checks, **settings
        )
    return configs


@dataclass(frozen=True)
class Estimate:
    """How long runs will take: seconds of work, how many of the runs nothing is known about, and how many are judged by
    the recording that ships with the demo tasks, made on another machine."""

    seconds: float
    unknown: int
    recorded: int = 0


def estimate(wanted: Iterable[RunConfig], history: Iterable[RunRow]) -> Estimate:
    """From how long like runs took here: same setup but epochs, seed and parameters; else same model and size of data;
    else, for the bundled model, from the recording that ships with it."""
    like: dict[tuple[Any, ...], list[float]] = {}
    similar: dict[tuple[Any, ...], list[float]] = {}
    for row in history:
        if row.status == "finished" and row.started and row.ended and row.attempt == 1:
            pace = (row.ended - row.started) / row.config.epochs
            like.setdefault(_like(row.config), []).append(pace)
            if size := _similar(row.config):
                similar.setdefault(size, []).append(pace)
    seconds, unknown, recorded = 0.0, 0, 0
    for config in wanted:
        paces = like.get(_like(config)) or similar.get(_similar(config) or ())
        if paces:
            seconds += statistics.median(paces) * config.epochs
        elif (shipped := _recorded(config)) is not None:
            seconds += shipped * config.epochs
            recorded += 1
        else:
            unknown += 1
    return Estimate(seconds, unknown, recorded)


def _recorded(config: RunConfig) -> float | None:
    """Seconds per epoch of the bundled model on a demo task, by the recording that ships with them."""
    recorded = recorded_pace(config.task) if config.model in bundled_models() else None
    if recorded is None:
        return None
    per_row, rows = recorded
    return per_row * min(config.max_train or rows, rows)


def _like(config: RunConfig) -> tuple[Any, ...]:
    rows = (config.max_train, config.max_eval, config.batch_size, config.max_length)
    return (config.model, config.task, config.data, config.method, config.precision, *rows)


def _similar(config: RunConfig) -> tuple[Any, ...] | None:
    if config.max_train is None:
        return None
    return (config.model, config.precision, config.max_train, config.max_eval, config.max_length)


def duration_words(estimated: Estimate, slots: int, words: Callable[[float], str]) -> str:
    """`about 45 s`, `45 s or more`, or that nothing is known yet. Slots work side by side."""
    if not estimated.seconds:
        return "unknown"
    text = words(estimated.seconds / max(1, slots))
    return f"more than {text}" if estimated.unknown else f"about {text}"


# ------------------------------------------------------------------------------------------------- presets and the form


def form_values(plan: Mapping[str, Any], default: Callable[[str], Any], settings: Sequence[str]) -> dict[str, Any]:
    """A preset's plan as field → value of its widget; settings that the preset does not name get their default.

    Args:
        plan: keyword arguments of `planning.expand`.
        default: the value of a setting's widget when nothing was said.
        settings: names of the common settings.
    """
    values: dict[str, Any] = {
        "models": list(plan["models"]),
        "tasks": list(plan["tasks"]),
        "methods": [slug for slug, _ in plan["methods"]],
        "seeds": " ".join(str(seed) for seed in plan["seeds"]),
    }
    for name in settings:
        values[name] = plan.get(name, default(name))
    return values
