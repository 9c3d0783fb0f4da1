"""The rows of a set one by one, and in slices by a column or by the length of its texts: does one differ from the rest?

Every measure is a mean over units (rows, queries or pairs), or has a standard error. A slice and the rest are compared by Welch's
t-test and by one with the variance of all units, of which the larger p counts: Welch's alone finds a small slice whose queries are all
answered different from a rest with 97 % answered. p-values are corrected by Holm's method over all slices and measures of a table.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError, listed
from isoviz.formatting import number
from isoviz.metrics import isoscore_interval
from isoviz.metrics.copies import nonzero_rows
from isoviz.metrics.each_row import Rows, rows
from isoviz.metrics.intervals import student_quantile
from isoviz.readouts import reading
from isoviz.readouts.image import Image
from isoviz.readouts.reading import Annotations
from isoviz.readouts.ruler.hits import best
from isoviz.readouts.ruler.hits import share as share_of
from isoviz.statistics import two_samples
from isoviz.statistics.paired_bootstrap import Mean

if TYPE_CHECKING:
    import pandas as pd

LENGTH: Final = "length"
MOST: Final = 20
"""Most slices: of a column with more values, the most frequent; numbers with more values are cut into quartiles."""
FEWEST: Final = 5
"""Fewest units of a slice that is tested."""
ALPHA: Final = 0.05
_OF_ROWS: Final = ("N_10", "share of queries", "reciprocity", "norm", "local dimension", "cosine to nearest")
"""Columns of `Rows.table` that are averaged."""
Codes = NDArray[np.int64]


class Estimate(NamedTuple):
    """A value, its standard error, the number of units that it is from, and its interval if it is not ± t standard errors."""

    value: float
    error: float
    n: int
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Slice:
    """One measure of one slice.

    Attributes:
        slice, measure: their names.
        n: units (rows, queries or pairs).
        value, low, high: with its 95 % interval; nan where undefined.
        rest: the measure of all other units.
        p: of no difference from the rest, after Holm's correction; nan where it cannot be tested.
    """

    slice: str
    measure: str
    n: int
    value: float
    low: float
    high: float
    rest: float
    p: float

    @property
    def verdict(self) -> str:
        if math.isnan(self.p):
            return "cannot be tested"
        return f"{'differs' if self.p < ALPHA else 'no difference shown'} (p = {number(self.p, 2)})"


class Slicing(NamedTuple):
    """(n,) the slice of each row, −1 for none, and the slices' names."""

    codes: Codes
    names: list[str]


def slicing(columns: pd.DataFrame, by: str) -> Slicing:
    """The slices of a set's rows.

    Args:
        columns: of the set; another column than these was read as its `group`.
        by: the column, or `length`: quartiles of the number of characters of its texts.

    Raises:
        InputError: no such column, or a single slice (field `by`).
    """
    import pandas as pd

    source = "text" if by == LENGTH else by if by in columns else "group"
    if source not in columns:
        what = "texts" if by == LENGTH else f"column '{by}'"
        raise InputError.at("by", f"these vectors have no {what} (columns: {listed(map(str, columns)) or 'none'})")
    values = columns[source].str.len() if by == LENGTH else columns[source]
    if pd.api.types.is_numeric_dtype(values) and (by == LENGTH or values.nunique() > MOST):
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        edges = np.unique(np.nanquantile(numbers, [0, 0.25, 0.5, 0.75, 1], method="lower"))
        codes = np.where(np.isnan(numbers), -1, np.clip(np.searchsorted(edges, numbers) - 1, 0, None))
        unit = " characters" if by == LENGTH else ""
        names = [
            f"{'from' if low == edges[0] else 'above'} {low:,.6g} to {high:,.6g}{unit}"
            for low, high in itertools.pairwise(edges)
        ]
    else:
        counts = values.value_counts()
        names = sorted(counts.index[:MOST].astype(str))
        codes = pd.Categorical(values.astype(str).where(values.notna()), categories=names).codes.astype(np.int64)
    if len(names) < 2:
        raise InputError.at("by", f"'{by}' has the same value in all rows, so there is one slice")
    return Slicing(codes, names)


def compared(measures: Mapping[str, Sequence[tuple[Estimate, Estimate]]], names: Sequence[str]) -> list[Slice]:
    """The slices by measure, given each slice's estimate and that of the rest."""
    found = []
    for measure, pairs in measures.items():
        named = [(name, *pair) for name, pair in zip(names, pairs, strict=True) if pair[0].n]
        for name, own, rest in named if len(named) > 1 else ():
            reach = student_quantile(0.975, own.n - 1) * own.error if own.n > 1 else math.nan
            low, high = own.ends or (own.value - reach, own.value + reach)
            p = _p(own, rest) if min(own.n, rest.n) >= FEWEST else math.nan
            found.append(Slice(name, measure, own.n, own.value, low, high, rest.value, p))
    corrected = two_samples.holm([one.p for one in found]).tolist() if found else []
    return [replace(one, p=p) for one, p in zip(found, corrected, strict=True)]


def _p(own: Estimate, rest: Estimate) -> float:
    """Of no difference: the larger of Welch's and of the test with the variance of all units, which is the true one if there is none."""
    from scipy import stats

    n, difference = own.n + rest.n, own.value - rest.value
    if max(own.error, rest.error) == 0 and abs(difference) <= 1e-6 * abs(own.value):  # the same but for rounding
        return math.nan
    squares = sum((one.n - 1) * one.n * one.error**2 for one in (own, rest)) + own.n * rest.n / n * difference**2
    of_all = 2 * stats.t.sf(abs(difference) / math.sqrt(squares / (n - 1) * (1 / own.n + 1 / rest.n)), n - 2)
    welch = two_samples.from_summaries(*((one.value, one.error * math.sqrt(one.n), one.n) for one in (own, rest)))
    return float(np.fmax(of_all, welch))


def of_units(
    values: Mapping[str, tuple[NDArray[Any], Codes]], names: Sequence[str]
) -> dict[str, list[tuple[Estimate, Estimate]]]:
    """For each measure, the mean of each slice and of the rest, given one number per unit (nan: none) and the units' slices."""
    found = {}
    for measure, (numbers, codes) in values.items():
        defined = np.isfinite(numbers)
        numbers, codes = numbers[defined], codes[defined]
        share = bool(len(numbers)) and numbers.min() >= 0 and numbers.max() <= 1
        parts = ((_mean(numbers[codes == k], share), _mean(numbers[codes != k], share)) for k in range(len(names)))
        found[measure] = list(parts)
    return found


def _mean(values: NDArray[Any], share: bool = False) -> Estimate:
    """`share`: the values lie between 0 and 1, and so does their interval."""
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    error = 0.0 if error <= 1e-6 * abs(mean) else error  # rounding, as of vectors of length 1
    return Estimate(mean, error, n, share_of(values, np.ones(n), np.arange(n))[1:] if share and n > 1 else None)


# ---------------------------------------------------------------------------------------------------------- of a set


def rows_of(points: NDArray[Any], annotations: Annotations) -> Rows:
    """`isoviz.rows` of a set; of a search, of its documents, with its queries. Raises `InputError` likewise."""
    if (search := annotations.queries) is None:
        return rows(points)
    return rows(points[search.documents], points[search.queries]).among(search.documents)


def measured(points: NDArray[Any], annotations: Annotations, of: Slicing) -> list[Slice]:
    """Isotropy and neighbours of the rows of each slice (of a search: of its documents), and what its labels or its queries read."""
    kept = nonzero_rows(points) if annotations.queries is None else annotations.queries.documents
    x, codes = np.asarray(points[kept], np.float64), of.codes[kept]
    units: dict[str, tuple[NDArray[Any], Codes]] = {}
    with contextlib.suppress(InputError):  # too few distinct rows
        found = rows_of(points, annotations)
        units = {name: (column, of.codes[found.row]) for name, column in found.table().items() if name in _OF_ROWS}
    isotropy = [[_isotropy(x[part]) for part in (codes == k, codes != k)] for k in range(len(of.names))]
    measures = {name: [(own[name], rest[name]) for own, rest in isotropy] for name in isotropy[0][0]}
    places: dict[str, Codes] = {}
    if (search := annotations.queries) is not None:
        places |= dict.fromkeys(
            ("ndcg_cosine", "recall10_cosine"), search.queries[np.unique(search.query[search.grade > 0])]
        )
    if annotations.labels is not None:
        places["knn"] = annotations.labels.rows
    used: dict[str, tuple[NDArray[Any], Codes]] = {}
    for slug, statistic in reading.measure(Image(points), annotations, places).items():
        if isinstance(statistic, Mean) and slug in places and statistic.n == len(places[slug]):
            used[reading.CATALOGUE[slug].title] = statistic.values, of.codes[places[slug]]
    return compared(of_units(used, of.names) | measures | of_units(units, of.names), of.names)


def _isotropy(x: NDArray[np.float64]) -> dict[str, Estimate]:
    """Neither depends on the number of rows. The mean cosine is a U-statistic of pairs: its error is twice that of a mean."""
    n, score, cosine = len(x), Estimate(math.nan, math.nan, len(x)), Estimate(math.nan, math.nan, len(x))
    if n >= FEWEST:
        unit, found = x / np.linalg.norm(x, axis=1, keepdims=True), isoscore_interval(x)
        cosine = _mean((unit @ unit.sum(axis=0) - 1) / (n - 1))
        score = Estimate(found.estimate, found.standard_error, n)
    return {"IsoScore, unbiased": score, "mean cosine": cosine._replace(error=2 * cosine.error)}


def on_ruler(
    points: NDArray[Any],
    of: Slicing,
    pairs: Codes | None,
    documents: Codes | None,
    floor: float,
    threshold: float | None,
) -> list[Slice]:
    """What a ruler says of each slice: is the best hit right, how many related pairs lie above the threshold, and how many unrelated ones
    above the noise floor.

    Args:
        pairs: (m, 2) places of related rows, of a search a query and a document.
        documents: places of a search's documents.
        floor: the cosine that 99 % of all unrelated pairs stay below.
        threshold: the recommended one, if any.
    """
    x = np.asarray(points, np.float64)
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
    left = right = nonzero_rows(x)
    ends = (
        np.zeros((0, 2), np.int64)
        if pairs is None
        else pairs
        if documents is not None
        else np.concatenate([pairs, pairs[:, ::-1]])
    )
    cosine, units = np.einsum("ij,ij->i", unit[ends[:, 0]], unit[ends[:, 1]]), dict[str, tuple[NDArray[Any], Codes]]()
    if pairs is not None and documents is not None:
        right, queries = np.intersect1d(documents, right), np.unique(pairs[:, 0])
        left, hits = np.setdiff1d(left, documents), best(x, pairs, queries, documents)
        for name, values in zip(("best hit is relevant", "cosine of the best hit"), reversed(hits), strict=True):
            units[name] = values, of.codes[queries]
    elif pairs is not None:
        own = cosine[: len(pairs)], of.codes[pairs[:, 0]]
        units["cosine of related pairs"] = own
        if threshold is not None:
            units["related pairs above the threshold"] = (own[0] >= threshold) * 1.0, own[1]
    counts = [
        np.count_nonzero(unit[block] @ unit[right].T > floor, axis=1)
        for block in np.array_split(left, 1 + len(left) // 500)
    ]
    related, above = (np.bincount(ends[:, 0], values, len(x))[left] for values in (None, cosine > floor))
    alone = documents is None or pairs is None  # every row is above the floor with itself
    others = np.concatenate(counts) - alone - above
    units["unrelated pairs above the noise floor"] = (
        others / np.maximum(len(right) - alone - related, 1),
        of.codes[left],
    )
    return compared(of_units(units, of.names), of.names)
