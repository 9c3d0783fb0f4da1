"""The runs behind the tables of Ding et al. 2022: four methods and none on understanding, translation and summarization."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from isoviz import recipes
from isoviz.runs.planning import MethodChoice
from isoviz.studies import quick
from isoviz.studies.grids import Grid, Plan

MODELS: Final = MappingProxyType(
    {
        "google-bert/bert-base-uncased": "BERT",
        "FacebookAI/roberta-base": "RoBERTa",
        "distilbert/distilbert-base-uncased": "DistilBERT",
    }
)
"""Encoders on the hub → their names in the paper, which does not state the checkpoints."""
BERT: Final = "google-bert/bert-base-uncased"
MBART, BART = "facebook/mbart-large-cc25", "facebook/bart-base"
WRITERS: Final = MappingProxyType({MBART: "mBART", BART: "BART"})

GLUE: Final = tuple(f"glue/{name}" for name in ("sst2", "mrpc", "cola", "rte", "wnli", "stsb", "qnli", "mnli", "qqp"))
LONGER: Final = ("glue/mrpc", "glue/wnli")
"""Trained for five epochs, the others for three."""
UNDERSTANDING: Final = ("demo/acceptability", "demo/paraphrase", "demo/similarity")
"""The quick scale: single texts, pairs, and a regression."""
THREE: Final = (0, 1, 2)

NONE: Final[MethodChoice] = ("baseline", {})
COSREG: Final[MethodChoice] = ("cosreg", {"lam": 1.0, "on": "output"})
POLYNOMIAL: Final[MethodChoice] = ("spectrum_pol", {})
EXPONENTIAL: Final[MethodChoice] = ("spectrum_exp", {})
FLOW: Final[MethodChoice] = ("flow", {})
ON_ALL: Final = (NONE, COSREG, POLYNOMIAL, EXPONENTIAL)
ORDER: Final = ("baseline", "cosreg", "spectrum_pol", "spectrum_exp", "flow")

_GLUE: Final[dict[str, Any]] = {
    name: value for name, value in recipes.get("calibration").settings.items() if name != "learning_rate"
}
_WRITING: Final[dict[str, Any]] = {
    name: value for name, value in recipes.get("calibration-bart").settings.items() if name != "learning_rate"
}
_RATES: Final = MappingProxyType({name: 1e-5 if "roberta" in name else 2e-5 for name in MODELS})


def _understanding() -> tuple[Plan, ...]:
    """Flow on BERT alone, as in the paper."""
    return tuple(
        Plan(
            (model,),
            tasks,
            (*ON_ALL, FLOW) if model == BERT else ON_ALL,
            THREE,
            _RATES[model],
            {**_GLUE, "epochs": epochs},
        )
        for model in MODELS
        for tasks, epochs in ((tuple(task for task in GLUE if task not in LONGER), 3), (LONGER, 5))
    )


UNDERSTAND: Final = Grid(
    "calibration-understanding",
    {"quick": quick.plans((*ON_ALL, FLOW), *UNDERSTANDING), "full": _understanding()},
)
"""Tables 1 and 4."""

_SMALL: Final = (NONE, FLOW)
_QUICK_WRITING: Final = {"epochs": 3, "max_length": 64, "batching": "shuffled", "max_eval": 200}
TRANSLATION_ROWS, TRANSLATION_SMALL = 1500, 500
SUMMARY_ROWS, SUMMARY_SMALL = 1000, 600


def _writing(task: str, rows: int, small: int, **settings: Any) -> tuple[Plan, ...]:
    common = {**_QUICK_WRITING, **settings}
    return (
        Plan((quick.WRITER,), (task,), ON_ALL, quick.SEEDS, 1e-3, {**common, "max_train": rows}),
        Plan((quick.WRITER,), (task,), _SMALL, quick.SEEDS, 1e-3, {**common, "max_train": small}),
    )


def _full_writing(model: str, tasks: tuple[str, ...], small: int, **settings: Any) -> tuple[Plan, ...]:
    common = {**_WRITING, **settings}
    return (
        Plan((model,), tasks, ON_ALL, THREE, 3e-5, common),
        Plan((model,), tasks, _SMALL, THREE, 3e-5, {**common, "max_train": small}),
    )


TRANSLATE: Final = Grid(
    "calibration-translation",
    {
        "quick": _writing("demo/translation", TRANSLATION_ROWS, TRANSLATION_SMALL),
        "full": (
            *_full_writing(MBART, ("wmt16/ro-en",), 50_000, direction="en-ro"),
            *_full_writing(MBART, ("wmt16/de-en",), 50_000, direction="de-en"),
        ),
    },
)
"""Table 2; Flow on the small set alone."""

SUMMARIZE: Final = Grid(
    "calibration-summarization",
    {
        "quick": _writing("demo/summarization", SUMMARY_ROWS, SUMMARY_SMALL, max_length=128),
        "full": _full_writing(BART, ("cnn_dailymail",), 20_000),
    },
)
"""Tables 3 and 5; Flow on the small set alone."""
