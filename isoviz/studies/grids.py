"""Families of runs shared by several studies: each run serves all figures and tables of its grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.runs import planning
from isoviz.runs.planning import IN_THIS_PROCESS, DataChecks, MethodChoice
from isoviz.studies.inputs import Inputs
from isoviz.studies.protocol import OWN


@dataclass(frozen=True)
class Plan:
    """Every combination of models, tasks, methods and seeds.

    Attributes:
        methods: (slug, parameters); a list as parameter is swept.
        learning_rate: None for the model's default.
        settings: further fields of `RunConfig`.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    methods: tuple[MethodChoice, ...]
    seeds: tuple[int, ...]
    learning_rate: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def declared(self) -> list[RunConfig]:
        """The runs as declared, without resolving anything, so models and data need not be on this machine."""
        variants = [(slug, params) for slug, choices in self.methods for params in _combinations(choices)]
        return [
            RunConfig.checked(
                model=model,
                task=task,
                method=methods.get(slug).slug,
                params=methods.check_params(slug, params),
                seed=seed,
                learning_rate=self.learning_rate or planning.default_learning_rate(model),
                **self.settings,
            )
            for model, task, seed, (slug, params) in itertools.product(self.models, self.tasks, self.seeds, variants)
        ]

    def resolved(self, data: Mapping[str, str], checks: DataChecks) -> list[RunConfig]:
        """The runs resolved for this machine. Raises like `isoviz.runs.planning.expand`."""
        return [
            config
            for model in self.models
            for task in self.tasks
            for config in planning.expand(
                [model],
                [task],
                self.methods,
                self.seeds,
                data=data.get(task),
                learning_rate=self.learning_rate,
                checks=checks,
                **self.settings,
            )
        ]


@dataclass(frozen=True)
class Grid:
    """A named family of runs.

    Attributes:
        slug: name of the grid.
        plans: scale → plans.
    """

    slug: str
    plans: Mapping[str, tuple[Plan, ...]]

    def declared(self, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
        """See `Plan.declared`; each run once."""
        return distinct(config for plan in chosen(self.plans[scale], inputs) for config in plan.declared())

    def configs(self, scale: str, inputs: Inputs = OWN, checks: DataChecks = IN_THIS_PROCESS) -> list[RunConfig]:
        """See `Plan.resolved`; each run once."""
        plans = chosen(self.plans[scale], inputs)
        return distinct(config for plan in plans for config in plan.resolved(inputs.data, checks))


def chosen(plans: Sequence[Plan], inputs: Inputs) -> list[Plan]:
    """Plans with the user's models, tasks, seeds and sizes instead of their own.

    A model or task in a plan keeps its settings there. Others take the settings of the first plan, and of the plans for the same
    models and tasks as the first.
    """
    models = tuple(model.source for model in inputs.models)
    like_first = [plan for plan in plans if (plan.models, plan.tasks) == (plans[0].models, plans[0].tasks)]
    new_models = tuple(name for name in models if not any(name in plan.models for plan in plans))
    new_tasks = tuple(name for name in inputs.tasks if not any(name in plan.tasks for plan in plans))
    chosen_plans = []
    for plan in plans:
        first = plan in like_first
        of_models = _selected(plan.models, models, new_models if first else ())
        of_tasks = _selected(plan.tasks, inputs.tasks, new_tasks if first else ())
        if of_models and of_tasks:
            settings = {**plan.settings, **inputs.settings}
            rate = settings.pop("learning_rate", plan.learning_rate)
            seeds = inputs.seeds or plan.seeds
            chosen_plans.append(
                replace(plan, models=of_models, tasks=of_tasks, seeds=seeds, learning_rate=rate, settings=settings)
            )
    return chosen_plans


def _selected(planned: tuple[str, ...], requested: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in requested if name in planned or name in new) if requested else planned


def distinct(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Each run once, in order."""
    return list({config.identity: config for config in configs}.values())


def _combinations(choices: Mapping[str, Any]) -> list[dict[str, Any]]:
    axes = [(name, value if isinstance(value, (list, tuple)) else [value]) for name, value in choices.items()]
    names = [name for name, _ in axes]
    return [dict(zip(names, point, strict=True)) for point in itertools.product(*(values for _, values in axes))]


Uses = Callable[[RunConfig], bool]
"""The runs of its grids that a study uses."""


def used(grids: Sequence[Grid], uses: Uses, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
    """The declared runs of some grids that a study draws from."""
    return distinct(config for grid in grids for config in grid.declared(scale, inputs) if uses(config))
