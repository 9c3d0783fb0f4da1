"""What paper 002 prints of EV_k, and which of our tasks stand for its four."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

Triple = tuple[float, float, float]

WHERE: Final = "IsoBN, Table 2"
BERT, ROBERTA = "bert-base-cased", "roberta-large"
FORMS: Final = ("none", "BN", "IsoBN")

TASKS: Final[Mapping[str, str]] = MappingProxyType(
    {"glue/mrpc": "MRPC", "glue/rte": "RTE", "glue/cola": "CoLA", "glue/stsb": "STS-B"}
)
"""Task of the catalogue → its name in the paper, in the paper's order."""

_PRINTED: Final[Mapping[tuple[str, str], tuple[Triple, Triple, Triple]]] = MappingProxyType(
    {
        (BERT, "MRPC"): ((0.76, 0.87, 0.89), (0.74, 0.84, 0.86), (0.37, 0.68, 0.77)),
        (BERT, "RTE"): ((0.88, 0.93, 0.95), (0.70, 0.89, 0.93), (0.49, 0.72, 0.85)),
        (BERT, "CoLA"): ((0.49, 0.58, 0.64), (0.37, 0.59, 0.63), (0.25, 0.37, 0.48)),
        (BERT, "STS-B"): ((0.89, 0.94, 0.96), (0.69, 0.88, 0.92), (0.41, 0.69, 0.85)),
        (ROBERTA, "MRPC"): ((0.86, 0.90, 0.91), (0.64, 0.73, 0.76), (0.18, 0.36, 0.43)),
        (ROBERTA, "RTE"): ((0.53, 0.66, 0.70), (0.36, 0.50, 0.57), (0.15, 0.29, 0.37)),
        (ROBERTA, "CoLA"): ((0.83, 0.88, 0.90), (0.61, 0.70, 0.75), (0.21, 0.38, 0.49)),
        (ROBERTA, "STS-B"): ((0.87, 0.90, 0.92), (0.65, 0.72, 0.77), (0.17, 0.32, 0.45)),
    }
)


def lacking(tasks: Sequence[str]) -> list[str]:
    """The paper's tasks that are not among ours, by its names; none where ours are others altogether."""
    found = [name for slug, name in TASKS.items() if slug not in tasks]
    return found if len(found) < len(TASKS) else []


def is_its(model: str) -> bool:
    """Whether a model by that name, with or without owner and revision, is one of the paper's two."""
    return _own(model) in (BERT, ROBERTA)


def compared(model: str) -> str:
    """The paper's encoder whose numbers stand beside those of `model`: its own, or BERT-base if it is not in the paper."""
    return _own(model) if is_its(model) else BERT


def _own(model: str) -> str:
    return model.partition("@")[0].rsplit("/", 1)[-1]


def printed(model: str, task: str, form: str) -> Triple | None:
    """EV_1, EV_2, EV_3 that the paper prints for its encoder (`compared`) and our task's slug; None where there is none."""
    rows = _PRINTED.get((model, TASKS.get(task, "")))
    return rows[FORMS.index(form)] if rows else None
