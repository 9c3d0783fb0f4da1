"""What the four papers print, cell by cell, with what a reader should know of each.

`results.csv` has a line per printed number, as printed: scores in percent where the paper prints percent, misprints uncorrected. Its
columns are those of `Printed`.
"""

from __future__ import annotations

import csv
import functools
import statistics
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from isoviz.tasks.metrics import METRICS

PAPERS: Final = {"isolayer": "000", "istar": "001", "isobn": "002", "calibration": "003"}
"""Paper → its number in our notes."""


@dataclass(frozen=True)
class Printed:
    """One printed number.

    Attributes:
        paper: see `PAPERS`; `place` is the table.
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


@functools.cache
def everything() -> tuple[Printed, ...]:
    """All printed numbers, paper by paper and table by table, in the order of print."""
    text = files(__name__).joinpath("results.csv").read_text(encoding="utf-8")
    return tuple(_printed(line) for line in csv.DictReader(text.splitlines()))


def of(paper: str, place: str) -> tuple[Printed, ...]:
    """The numbers of one table; `ValueError` where there is none."""
    found = tuple(one for one in everything() if (one.paper, one.place) == (paper, place))
    if not found:
        raise ValueError(f"no printed numbers of '{paper}', {place}")
    return found


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


def _printed(line: dict[str, str]) -> Printed:
    return Printed(
        paper=line["paper"],
        place=line["place"],
        model=line["model"],
        task=line["task"],
        method=line["method"],
        label=line["label"],
        metric=line["metric"],
        value=float(line["value"]) if line["value"] else None,
        sd=float(line["sd"]) if line["sd"] else None,
        seeds=int(line["seeds"]) if line["seeds"] else None,
        statistic=line["statistic"],
        remark=line["remark"],
        doubt=line["doubt"],
    )
