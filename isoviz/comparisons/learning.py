"""Was anything learned? Runs that do no better than a simple approach say nothing about the methods they were trained with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from isoviz import tasks
from isoviz.comparisons import wording
from isoviz.tasks.metrics import METRICS


def nothing_learned(task: str, scores: Iterable[float | None], simple: Mapping[str, float | None]) -> str:
    """The warning for runs of which none beats the best simple approach; "" where one does, or where nothing is known.

    Args:
        task: its slug; of tasks that are not in the catalogue, and of errors, nothing is known.
        scores: the task's primary metric of each finished run, None where it is undefined.
        simple: name of a simple approach (`bag_of_words`) → what it reaches in that metric.
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
