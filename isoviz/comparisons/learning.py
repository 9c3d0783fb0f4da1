"""Whether anything was learned: runs that do not beat a simple approach say nothing about their methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from isoviz import tasks
from isoviz.comparisons import wording
from isoviz.tasks.metrics import METRICS


def nothing_learned(task: str, scores: Iterable[float | None], simple: Mapping[str, float | None]) -> str:
    """The warning if no run beats the best simple approach; "" if one does or no reference is known.

    Args:
        task: its slug; there is no reference for error metrics or tasks outside the catalogue.
        scores: the task's primary metric of each finished run; None if it is undefined.
        simple: name of a simple approach (`bag_of_words`) → its score in this metric.
    """
    task_entry = tasks.catalogue().get(task)
    reached = {name: value for name, value in simple.items() if value is not None}
    values = list(scores)
    if task_entry is None or not reached or not values or not METRICS[task_entry.primary].higher_is_better:
        return ""
    best = max(reached, key=reached.__getitem__)
    if any(value is not None and value > reached[best] for value in values):
        return ""
    subject = "no run beats" if len(values) > 1 else "this run does not beat"
    level = wording.number(reached[best], scale=METRICS[task_entry.primary].highest)
    return f"Nothing was learned: {subject} {best.replace('_', ' ')} ({level}). Do not compare."
