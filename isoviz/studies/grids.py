"""Families of runs shared by several studies: each run serves all figures and tables of its grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from isoviz import recipes
from isoviz.config import RunConfig
from isoviz.runs import planning
from isoviz.runs.planning import MethodChoice
from isoviz.studies.inputs import OWN, Inputs

ENCODER: Final = "demo/tiny-bert"
THREE: Final = (0, 1, 2)
"""Seeds: as few as a verdict needs."""
FIVE: Final = (0, 1, 2, 3, 4)
NONE: Final[MethodChoice] = ("baseline", {})
ROWS: Final = MappingProxyType({"demo/acceptability": 1000, "demo/similarity": 1500, "demo/paraphrase": 2000})
"""Training rows of a run at the quick scale: as few as its baseline needs to beat bag of words clearly."""
QUICK: Final = MappingProxyType[str, Any]({"epochs": 3, "max_length": 48, "batching": "shuffled"})
"""Further settings of the quick scale: the batches are shuffled as in the papers. All studies have the same ones, so that they can
share a run."""


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
        variants = [variant for slug, choices in self.methods for variant in planning.grid(slug, choices)]
        return [
            RunConfig.checked(
                model=model,
                task=task,
                method=slug,
                params=params,
                seed=seed,
                learning_rate=self.learning_rate or planning.default_learning_rate(model),
                **self.settings,
            )
            for model, task, seed, (slug, params) in itertools.product(self.models, self.tasks, self.seeds, variants)
        ]

    def resolved(self, data: Mapping[str, str]) -> list[RunConfig]:
        """The runs resolved for this machine. Raises like `isoviz.runs.planning.expand`."""
        return [
            config
            for model, task in itertools.product(self.models, self.tasks)
            for config in planning.expand(
                [model],
                [task],
                self.methods,
                self.seeds,
                data=data.get(task),
                learning_rate=self.learning_rate,
                **self.settings,
            )
        ]


@dataclass(frozen=True)
class Grid:
    """A named family of runs at each scale."""

    slug: str
    quick: tuple[Plan, ...]
    full: tuple[Plan, ...]

    def declared(self, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
        """See `Plan.declared`; each run once."""
        return _distinct(config for plan in self._plans(scale, inputs) for config in plan.declared())

    def configs(self, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
        """See `Plan.resolved`; each run once."""
        return _distinct(config for plan in self._plans(scale, inputs) for config in plan.resolved(inputs.data))

    def _plans(self, scale: str, inputs: Inputs) -> list[Plan]:
        return chosen({"quick": self.quick, "full": self.full}[scale], inputs)


def quick_plans(methods: Sequence[MethodChoice], *tasks: str) -> tuple[Plan, ...]:
    """The bundled encoder on tasks of `ROWS`."""
    return tuple(
        Plan((ENCODER,), (task,), tuple(methods), THREE, None, {**QUICK, "max_train": ROWS[task]}) for task in tasks
    )


def recipe(name: str, **overrides: Any) -> dict[str, Any]:
    """The settings of a paper's recipe except its learning rate, which is a plan's own."""
    settings = recipes.get(name).settings
    return {key: value for key, value in settings.items() if key != "learning_rate"} | overrides


def chosen(plans: Sequence[Plan], inputs: Inputs) -> list[Plan]:
    """Plans with the user's models, tasks, seeds and sizes instead of their own.

    A model or task in a plan keeps its settings there. Others take the settings of the first plan, and of the plans for the same
    models and tasks as the first.
    """
    models = tuple(model.source for model in inputs.models)
    new_models = tuple(name for name in models if not any(name in plan.models for plan in plans))
    new_tasks = tuple(name for name in inputs.tasks if not any(name in plan.tasks for plan in plans))
    chosen_plans = []
    for plan in plans:
        like_first = (plan.models, plan.tasks) == (plans[0].models, plans[0].tasks)
        of_models = _selected(plan.models, models, new_models if like_first else ())
        of_tasks = _selected(plan.tasks, inputs.tasks, new_tasks if like_first else ())
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


def _distinct(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Each run once, in order."""
    return list({config.identity: config for config in configs}.values())
