"""EV_k as printed by Zhou et al. 2021 (IsoBN), and our counterparts of its four tasks."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from isoviz.studies.published import of

Triple = tuple[float, float, float]

WHERE: Final = "IsoBN, Table 2"
BERT, ROBERTA = "bert-base-cased", "roberta-large"
FORMS: Final = ("none", "BN", "IsoBN")

TASKS: Final[Mapping[str, str]] = MappingProxyType(
    {"glue/mrpc": "MRPC", "glue/rte": "RTE", "glue/cola": "CoLA", "glue/stsb": "STS-B"}
)
"""Task of the catalogue → its name in the paper, in the paper's order."""


@functools.cache
def _printed() -> Mapping[tuple[str, str, str], Triple]:
    """(model, task of ours, form) → EV_1, EV_2, EV_3."""
    by_cell: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in of("isobn", "Table 2"):
        assert cell.value is not None
        by_cell.setdefault((cell.model, cell.task, cell.label), {})[cell.metric] = cell.value
    return MappingProxyType({key: (ev["ev_1"], ev["ev_2"], ev["ev_3"]) for key, ev in by_cell.items()})


def missing_tasks(tasks: Sequence[str]) -> list[str]:
    """The paper's tasks that are not among ours, by its names; empty if we use other tasks."""
    absent = [name for slug, name in TASKS.items() if slug not in tasks]
    return absent if len(absent) < len(TASKS) else []


def is_from_paper(model: str) -> bool:
    """Whether a model by that name, with or without owner and revision, is one of the paper's two."""
    return _own(model) in (BERT, ROBERTA)


def compared(model: str) -> str:
    """The paper's encoder whose numbers are shown next to those of `model`: its own, or BERT-base if it is not in the paper."""
    return _own(model) if is_from_paper(model) else BERT


def _own(model: str) -> str:
    return model.partition("@")[0].rsplit("/", 1)[-1]


def printed(model: str, task: str, form: str) -> Triple | None:
    """Published EV_1, EV_2, EV_3 for the paper's encoder (`compared`) and our task's slug; None if not published."""
    return _printed().get((model, task, form))
