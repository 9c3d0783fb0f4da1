"""The shapes of trained studies' tables: rows for each model and task, filled from its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from isoviz.runs.naming import parameter_symbols, setting
from isoviz.studies.judging import primary
from isoviz.studies.records import Evidence, task_title
from isoviz.studies.result import Row, Table

SPREAD = "mean ± standard deviation over seeds"


def rows_table(
    title: str,
    header: Sequence[str],
    rows: Callable[[Evidence, str], Iterable[Row]],
    note: str,
    by: tuple[str, str] = ("task", "model"),
) -> Callable[[Evidence], Table]:
    """A table with some rows for each model and task.

    Args:
        header: of the columns after the model and the task.
        rows: those columns, from the runs and the task's metric.
        by: whether all models of a task or all tasks of a model stand together.
    """

    def table(evidence: Evidence) -> Table:
        cells = [
            [*(task_title(value) if name == "task" else value for name, value in zip(by, values, strict=True)), *row]
            for *values, part in evidence.each(*by)
            for row in rows(part, primary(values[by.index("task")]))
        ]
        return Table(title=title, header=[*by, *header], rows=cells, notes=[note])

    return table


def tasks_table(
    title: str,
    methods: Mapping[str, tuple[str, str]],
    note: str,
    metric: Callable[[str], str] = primary,
    middle: str = "mean",
    last: Mapping[str, Callable[[Evidence, str], str | None]] | None = None,
) -> Callable[[Evidence], Table]:
    """A table with a row for each model and method, and a column for each task.

    Args:
        methods: method → its name in the table, and the parameter whose best value it has on each task; "" for none.
        metric: of a task.
        middle: the average over seeds: mean or median.
        last: further columns: name → the cell, from a model's runs and the method.
    """

    def cell(runs: Evidence, task: str, method: str, parameter: str) -> str:
        part = runs.where(task=task, method=method)
        chosen = part.best(metric(task), parameter) if parameter else None
        if chosen is None:
            return part.cell(metric(task)).text(middle=middle)
        value = setting(chosen.planned[0].params[parameter])
        return f"{chosen.cell(metric(task)).text(middle=middle)}, {parameter_symbols(method)[parameter]} = {value}"

    def table(evidence: Evidence) -> Table:
        rows: list[Row] = [
            [
                model,
                name,
                *(cell(runs, task, method, parameter) for task in evidence.tasks),
                *(further(runs, method) for further in (last or {}).values()),
            ]
            for model, runs in evidence.each("model")
            for method, (name, parameter) in methods.items()
            if runs.where(method=method).planned
        ]
        columns = [f"{task_title(task)}, {metric(task)}" for task in evidence.tasks]
        return Table(title=title, header=["model", "method", *columns, *(last or {})], rows=rows, notes=[note])

    return table
