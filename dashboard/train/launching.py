"""Runs from a completed form. No widgets here."""

from __future__ import annotations

from collections.abc import Mapping
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
    """The content of the form.

    Attributes:
        models: model names.
        tasks: (slug, data folder or None).
        methods: (slug, parameter → values).
        seeds: one run each.
        settings: common training settings; missing ones have their defaults.
        own: columns of the task `own`.
        directions: slug → direction of translation tasks.
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
        """Number of methods, each counted once per combination of parameter values."""
        return sum(prod(len(values) for values in params.values()) for _, params in self.methods)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.models) * len(self.tasks) * self.variants * len(self.seeds)


def configs(plan: Plan, checks: planning.DataChecks = planning.IN_THIS_PROCESS) -> list[RunConfig]:
    """All runs of a plan, checked and resolved. Raises `InputError` for the first invalid field. `checks` reads the files.

    Data folder, columns and direction differ by task, so tasks are expanded separately.
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
        del settings["doc_stride"]  # unchanged in the form: short inputs get a smaller stride
    configs: list[RunConfig] = []
    for task, data in plan.tasks:
        own = plan.own if task == tasks.OWN else None
        direction = plan.directions.get(task)
        configs += planning.expand(
            plan.models, [task], choices, plan.seeds, data=data, own=own, direction=direction, checks=checks, **settings
        )
    return configs
