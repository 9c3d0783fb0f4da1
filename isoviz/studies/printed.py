"""Published numbers with ours, for runs with the paper's model and task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from isoviz.studies.evidence import Evidence
from isoviz.studies.published import Printed, of
from isoviz.studies.result import Published

Choose = Callable[[Printed, Evidence], Evidence]
"""Selects the runs that correspond to a published number, among those of its model and task."""


def by_method(cell: Printed, evidence: Evidence) -> Evidence:
    """The runs of the printed method."""
    return evidence.where(method=cell.method)


def with_measured(
    evidence: Evidence,
    paper: str,
    place: str,
    models: Mapping[str, str],
    choose: Choose = by_method,
    middle: Literal["mean", "median"] = "mean",
) -> list[Published]:
    """Every printed number of a place whose model and task are among the planned runs, ours None before any has finished.

    Args:
        models: our model → its name in the paper's table.
        middle: the paper's average over seeds: mean or median.
    """
    numbers = []
    for cell in of(paper, place):
        for model, name in models.items():
            if name != cell.model or cell.value is None or not cell.task:
                continue
            part = choose(cell, evidence.where(model=model, task=cell.task))
            if not part.planned:
                continue
            measured = getattr(part.cell(cell.metric), middle)
            numbers.append(
                Published(
                    what=f"{cell.model}, {cell.task}, {cell.label}, {cell.metric}",
                    published=cell.value,
                    reproduced=None if measured is None else cell.scale * measured,
                    where=place,
                    differs=cell.doubt,
                )
            )
    return numbers


def titled(paper_name: str, numbers: list[Published]) -> list[Published]:
    """The same with the paper's name before the place."""
    return [number.model_copy(update={"where": f"{paper_name}, {number.where}"}) for number in numbers]
