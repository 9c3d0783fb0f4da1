"""From a filled form to queued runs, and from a preset to a filled form. No widgets here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.runs import planning
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
