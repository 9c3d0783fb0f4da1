"""What the four papers print, cell by cell, with what a reader should know of each.

`published.csv` has a line per printed number, as printed: scores in percent where the paper prints percent, misprints uncorrected. Its
columns are those of `Printed`.
"""

from __future__ import annotations

import csv
import functools
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from isoviz.studies import papers
from isoviz.studies.records import Evidence
from isoviz.studies.result import Published
from isoviz.tasks.metrics import METRICS

SMALL: Final = " (small dataset)"
"""After the name of a model that was trained on a part of the data."""
_NUMBERS: Final[Mapping[str, Callable[[str], float]]] = MappingProxyType({"value": float, "sd": float, "seeds": int})
_CHECKPOINTS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("istar", "BERT"): "bert-base-cased",
        ("istar", "ALBERT"): "albert-base-v2",
        ("istar", "DistilBERT"): "distilbert-base-cased",
        # the calibration paper names the families only: the checkpoints are our choice
        ("calibration", "BERT"): "bert-base-uncased",
        ("calibration", "RoBERTa"): "roberta-base",
        ("calibration", "DistilBERT"): "distilbert-base-uncased",
        ("calibration", "BART"): "bart-base",
        ("calibration", "mBART"): "mbart-large-cc25",
    }
)
"""Paper, its name of a model → the last part of the model's hub id; other names are hub ids already."""
_COPIED: Final = ("reported elsewhere", "(paper 002)", SMALL)
"""In a label or a model's name: numbers that the paper copies from others, or of a part of the data."""


@dataclass(frozen=True)
class Printed:
    """One printed number.

    Attributes:
        paper: its slug (`isoviz.studies.papers`); `place` is the table.
        model, label: as the paper calls the model and the method.
        task, method: slugs of our catalogues; task is "" for an average over tasks.
        metric: in our names; of isotropy, of a task, or `lam`, `zeta`, `minutes_per_epoch`, `average`, `relative_improvement_…_pct`.
        value, sd: as printed; None where no number is.
        seeds: None where the paper does not say.
        statistic: what the number is of several runs: mean, median, …; "" where it is neither.
        remark: what else the paper says of it, or leaves unsaid.
        doubt: why it cannot be right, or is not what it seems; "" for most.
    """

    paper: str
    place: str
    model: str
    task: str
    method: str
    label: str
    metric: str
    value: float | None
    sd: float | None
    seeds: int | None
    statistic: str
    remark: str
    doubt: str

    @property
    def scale(self) -> float:
        """The printed value of 1 on our runs' scale: 100 where the paper prints percent."""
        known = METRICS.get(self.metric.removesuffix("_mismatched"))
        return 100.0 if known is not None and known.highest == 1.0 else 1.0

    @property
    def on_our_scale(self) -> float | None:
        """The value as our runs report it."""
        return None if self.value is None else self.value / self.scale

    @property
    def where(self) -> str:
        """`IsoBN, 002, Table 1`."""
        source = papers.get(self.paper)
        return f"{source.name}, {source.number}, {self.place}"


@functools.cache
def everything() -> tuple[Printed, ...]:
    """All printed numbers, paper by paper and table by table, in the order of print."""
    text = files("isoviz.studies").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Printed(**{name: _cell(name, value) for name, value in line.items()})
        for line in csv.DictReader(text.splitlines())
    )


def _cell(column: str, text: str) -> Any:
    convert = _NUMBERS.get(column)
    return text if convert is None else convert(text) if text else None


def of(paper: str, place: str) -> tuple[Printed, ...]:
    """The numbers of one table."""
    return tuple(cell for cell in everything() if (cell.paper, cell.place) == (paper, place))


def margin(paper: str, place: str, metric: str) -> float:
    """The largest difference in a metric that counts as none, on our runs' scale; 0 where no deviation is printed.

    Twice the median standard deviation over seeds that the table prints without a method: a smaller difference would not stand
    out among the paper's own seeds.
    """
    spreads = [
        cell.sd / cell.scale
        for cell in of(paper, place)
        if (cell.method, cell.metric) == ("baseline", metric) and cell.sd is not None
    ]
    return 2 * statistics.median(spreads) if spreads else 0.0


def beside(model: str, task: str, method: str, metric: str) -> tuple[Printed, ...]:
    """The published numbers of that model, task, method and metric, paper by paper; mostly none.

    A paper's own parameters, epochs and batch size need not be the run's.

    Args:
        model: hub id, or a folder that is named like one.
        task, method, metric: our names.
    """
    checkpoint = model.partition("@")[0].rstrip("/").rsplit("/", 1)[-1].lower()
    return _by_setting().get((checkpoint, task, method, metric), ())


@functools.cache
def _by_setting() -> Mapping[tuple[str, str, str, str], tuple[Printed, ...]]:
    cells: dict[tuple[str, str, str, str], tuple[Printed, ...]] = {}
    for cell in everything():
        copied = any(word in cell.label or word in cell.model for word in _COPIED)
        copied |= (cell.paper, cell.method) == ("isolayer", "isobn")
        if cell.value is None or not cell.task or copied:
            continue
        key = (_CHECKPOINTS.get((cell.paper, cell.model), cell.model), cell.task, cell.method, cell.metric)
        cells[key] = (*cells.get(key, ()), cell)
    return cells


def by_method(cell: Printed, evidence: Evidence) -> Evidence:
    """The runs of the printed method."""
    return evidence.where(method=cell.method)


def at_best(**parameters: str) -> Callable[[Printed, Evidence], Evidence | None]:
    """The runs of the printed method, at the best setting of its parameter: method → the parameter."""

    def choose(cell: Printed, evidence: Evidence) -> Evidence:
        part, name = by_method(cell, evidence), parameters.get(cell.method)
        return (part.best(cell.metric, name) or part) if name else part

    return choose


@dataclass(frozen=True)
class Compared:
    """How a table's printed numbers are compared with runs of the paper's models and tasks.

    Attributes:
        models: our model → its name in the paper's table.
        choose: the runs that correspond to a printed number, among those of its model and task; None for a number that is not
            compared.
        middle: the paper's average over seeds: mean or median.
    """

    models: Mapping[str, str]
    choose: Callable[[Printed, Evidence], Evidence | None] = by_method
    middle: str = "mean"

    def numbers(self, evidence: Evidence, source: papers.Source, place: str) -> list[Published]:
        """Every printed number whose model and task are among the planned runs, ours None before any has finished."""
        numbers = []
        for cell in of(source.slug, place):
            for model, name in self.models.items():
                if name != cell.model.removesuffix(SMALL) or cell.value is None or not cell.task:
                    continue
                part = self.choose(cell, evidence.where(model=model, task=cell.task))
                if part is None or not part.planned:
                    continue
                measured = getattr(part.cell(cell.metric), self.middle)
                numbers.append(
                    Published(
                        what=f"{cell.model}, {cell.task}, {cell.label}, {cell.metric}",
                        published=cell.value,
                        reproduced=None if measured is None else cell.scale * measured,
                        where=f"{source.name}, {place}",
                        differs=cell.doubt,
                    )
                )
        return numbers
