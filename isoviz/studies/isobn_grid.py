"""The runs behind IsoBN's Table 1 and IsoLayer's tables and figure: three methods on the same tasks."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from isoviz import recipes
from isoviz.runs.planning import MethodChoice
from isoviz.studies import quick
from isoviz.studies.grids import Grid, Plan

BERT, ROBERTA = "google-bert/bert-base-cased", "FacebookAI/roberta-large"
MODELS: Final = MappingProxyType({BERT: "bert-base-cased", ROBERTA: "roberta-large"})
"""Models on the hub → their names in both papers."""
RATES: Final = MappingProxyType({BERT: 2e-5, ROBERTA: 1e-5})
"""One of the values searched; the papers do not state the selected one."""
FIVE: Final = (0, 1, 2, 3, 4)

GLUE: Final = tuple(f"glue/{name}" for name in ("mnli", "qnli", "rte", "sst2", "mrpc", "cola", "stsb"))
OF_ISOLAYER: Final = ("glue/rte", "glue/cola", "glue/mrpc")
QUICK_TASKS: Final = ("demo/acceptability", "demo/paraphrase", "demo/similarity")
QUICK_OF_ISOLAYER: Final = ("demo/acceptability", "demo/paraphrase")
BETAS: Final = (0.25, 0.5, 1.0)
QUICK_BETAS: Final = (0.5, 1.0)

NONE: Final[MethodChoice] = ("baseline", {})
ISOLAYER: Final[MethodChoice] = ("isolayer", {})


def _settings(recipe: str, **overrides: Any) -> dict[str, Any]:
    recipe_settings = recipes.get(recipe).settings.items()
    return {name: value for name, value in recipe_settings if name != "learning_rate"} | overrides


def _full(methods: tuple[MethodChoice, ...], tasks: tuple[str, ...], settings: dict[str, Any]) -> tuple[Plan, ...]:
    return tuple(Plan((model,), tasks, methods, FIVE, RATES[model], settings) for model in MODELS)


ISOBN: Final = Grid(
    "isobn",
    {
        "quick": quick.plans((NONE, ("isobn", {"beta": QUICK_BETAS})), *QUICK_TASKS),
        "full": _full((NONE, ("isobn", {"beta": BETAS})), GLUE, _settings("isobn")),
    },
)
"""IsoBN at each β, and none."""

LAYER: Final = Grid(
    "isolayer",
    {
        "quick": quick.plans((NONE, ISOLAYER, ("isobn", {"beta": QUICK_BETAS})), *QUICK_OF_ISOLAYER),
        "full": _full(
            (NONE, ISOLAYER, ("isobn", {"beta": BETAS})), OF_ISOLAYER, _settings("isolayer", epochs=10, max_length=256)
        ),
    },
)
"""The IsoLayer, none, and IsoBN trained on the same rows."""
