"""The printed numbers to compare one of our runs with: same model, task, method and metric."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from isoviz.studies.published import Printed, everything

_CHECKPOINTS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("istar", "BERT"): "bert-base-cased",
        ("istar", "ALBERT"): "albert-base-v2",
        ("istar", "DistilBERT"): "distilbert-base-cased",
        # the calibration paper names the families only: the checkpoints are our choice (isoviz.models.published)
        ("calibration", "BERT"): "bert-base-uncased",
        ("calibration", "RoBERTa"): "roberta-base",
        ("calibration", "DistilBERT"): "distilbert-base-uncased",
        ("calibration", "BART"): "bart-base",
        ("calibration", "mBART"): "mbart-large-cc25",
    }
)
"""Paper, its name of a model → the last part of the model's hub id; other names are hub ids already."""
TITLES: Final = MappingProxyType(
    {
        "isolayer": "IsoLayer, 000",
        "istar": "I-STAR, 001",
        "isobn": "IsoBN, 002",
        "calibration": "Isotropy calibration, 003",
    }
)
_COPIED: Final = ("reported elsewhere", "(paper 002)", "(small dataset)")
"""In a label or a model's name: numbers that the paper copies from others, or of a part of the data."""


def beside(model: str, task: str, method: str, metric: str) -> tuple[Printed, ...]:
    """The published numbers of that model, task, method and metric, paper by paper; mostly none.

    A paper's own parameters, epochs and batch size need not be the run's.

    Args:
        model: hub id, or a folder that is named like one.
        task, method, metric: our names.
    """
    checkpoint = model.partition("@")[0].rstrip("/").rsplit("/", 1)[-1].lower()
    return _by_place().get((checkpoint, task, method, metric), ())


def where(printed: Printed) -> str:
    """`IsoBN, 002, Table 1`."""
    return f"{TITLES[printed.paper]}, {printed.place}"


@functools.cache
def _by_place() -> Mapping[tuple[str, str, str, str], tuple[Printed, ...]]:
    found: dict[tuple[str, str, str, str], tuple[Printed, ...]] = {}
    for one in everything():
        copied = any(word in one.label or word in one.model for word in _COPIED)
        copied |= (one.paper, one.method) == ("isolayer", "isobn")
        if one.value is None or not one.task or copied:
            continue
        key = (_CHECKPOINTS.get((one.paper, one.model), one.model), one.task, one.method, one.metric)
        found[key] = (*found.get(key, ()), one)
    return found
