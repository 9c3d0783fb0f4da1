"""The runs behind I-STAR's figures and tables: one sweep of λ, and what single figures add to it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from isoviz import recipes
from isoviz.runs.planning import MethodChoice
from isoviz.studies import quick
from isoviz.studies.grids import Grid, Plan

MODELS: Final = MappingProxyType(
    {
        "albert/albert-base-v2": "ALBERT",
        "google-bert/bert-base-cased": "BERT",
        "distilbert/distilbert-base-cased": "DistilBERT",
    }
)
"""The paper's encoders on the hub → their names in its tables."""
DEPTHS: Final = MappingProxyType(
    {"albert/albert-base-v2": 12, "google-bert/bert-base-cased": 12, "distilbert/distilbert-base-cased": 6}
)
TASKS: Final = tuple(f"glue/{name}" for name in ("sst2", "qnli", "rte", "mrpc", "qqp", "cola", "stsb"))
"""All of the paper's but the two with settings or sources of their own."""
OF_SENTENCES: Final = (*TASKS, "sst5")
FIVE: Final = (0, 1, 2, 3, 4)
LAMBDAS: Final = (-5.0, -3.0, -1.0, 0.5, 1.0, 3.0, 5.0)
"""Of Figure 3; the search of Table 2 leaves 0.5 out."""
SEARCHED: Final = (-5.0, -3.0, -1.0, 1.0, 3.0, 5.0)
ZETAS: Final = (0.2, 0.4, 0.6, 0.8)
ALL_ZETAS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
ZETA: Final = 0.2

MAIN, SECOND = "demo/acceptability", "demo/similarity"
"""The quick scale: one task of single texts, one of pairs."""

_FULL: Final[dict[str, Any]] = {
    name: value for name, value in recipes.get("istar").settings.items() if name != "learning_rate"
}
_RATE: Final = 3e-5
_SQUAD: Final = {**_FULL, "max_length": 384, "doc_stride": 128}


def _full(methods: tuple[MethodChoice, ...], tasks: tuple[str, ...] = OF_SENTENCES) -> Plan:
    return Plan(tuple(MODELS), tasks, methods, FIVE, _RATE, _FULL)


_SWEEP: Final[tuple[MethodChoice, ...]] = (
    ("baseline", {}),
    ("istar", {"lam": LAMBDAS, "zeta": ZETA}),
    ("cosreg", {"lam": 1.0}),
)

LAMBDA: Final = Grid(
    "istar-lambda",
    {
        "quick": quick.plans(_SWEEP, MAIN, SECOND),
        "full": (_full(_SWEEP), Plan(tuple(MODELS), ("squad",), _SWEEP, FIVE, _RATE, _SQUAD)),
    },
)
"""Plain fine-tuning, I-STAR at every λ, and CosReg, on every task."""

_SEARCH: Final = (("istar", {"lam": SEARCHED, "zeta": ZETAS}),)
SEARCH: Final = Grid(
    "istar-search",
    {
        "quick": quick.plans([("istar", {"lam": (-5.0, -1.0, 1.0, 5.0), "zeta": (0.2, 0.8)})], MAIN),
        "full": (_full(_SEARCH), Plan(tuple(MODELS), ("squad",), _SEARCH, FIVE, _RATE, _SQUAD)),
    },
)
"""λ × ζ."""

COSREG: Final = Grid(
    "istar-cosreg",
    {
        "quick": quick.plans([("cosreg", {"lam": (-1.0, 1.0)}), ("baseline", {})], MAIN),
        "full": (_full((("cosreg", {"lam": (-1.0, 1.0)}), ("baseline", {})), ("glue/qnli",)),),
    },
)
"""CosReg both ways."""

SHRINKAGE: Final = Grid(
    "istar-zeta",
    {
        "quick": quick.plans([("istar", {"lam": -1.0, "zeta": ALL_ZETAS})], MAIN),
        "full": (_full((("istar", {"lam": -1.0, "zeta": ALL_ZETAS}),), ("glue/rte",)),),
    },
)
"""Every ζ at one λ."""


def _layers(depth: int, lam: float, zeta: float) -> tuple[MethodChoice, ...]:
    return (("istar", {"lam": lam, "zeta": zeta, "layer": tuple(range(depth + 1))}),)


OPTIMA_ON_COLA: Final = MappingProxyType(
    {
        "albert/albert-base-v2": (-1.0, 0.8),
        "google-bert/bert-base-cased": (-1.0, 0.8),
        "distilbert/distilbert-base-cased": (-3.0, 0.4),
    }
)
"""λ and ζ of Table 2, which Figure 8 keeps."""

LAYERS: Final = Grid(
    "istar-layers",
    {
        "quick": quick.plans(_layers(4, -1.0, ZETA), MAIN),
        "full": tuple(
            Plan((model,), ("glue/cola",), _layers(DEPTHS[model], *optimum), FIVE, _RATE, _FULL)
            for model, optimum in OPTIMA_ON_COLA.items()
        ),
    },
)
"""I-STAR on one layer at a time; layer 0 is all of them together."""
