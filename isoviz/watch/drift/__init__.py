"""Did these embeddings change? A set compared with a saved baseline, each measure with an interval and a tolerance.

    before = isoviz.baseline(points, ids=ids)
    print(isoviz.check(other_points, before, ids=ids).sentence)

    measures.py  the measures, what they become without each group of rows, default tolerances, distances
    records.py   a baseline as a file, and what a check says

Arrays need numpy and pydantic only; tables need pyarrow and pandas.
"""

from __future__ import annotations

import math
import os
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz import __version__, vectors
from isoviz.errors import InputError, shortened, unknown_name
from isoviz.metrics.cloud import draw, is_tensor
from isoviz.metrics.copies import nonzero_rows
from isoviz.metrics.intervals import jackknife_error, student_quantile
from isoviz.readouts import retrieval, slices
from isoviz.readouts.division import annotations_of
from isoviz.readouts.image import Image
from isoviz.readouts.slices import Slice, Slicing
from isoviz.statistics.paired_bootstrap import Mean
from isoviz.tables import arrays
from isoviz.vectors.sets import VectorSet
from isoviz.watch.drift.measures import (
    FEWEST,
    GROUPS,
    MEASURES,
    SEARCHES,
    Matrix,
    agreements,
    measured,
    squared_distances,
)
from isoviz.watch.drift.records import CANARY, Baseline, Check, Drift, Outcome, missing_notes
from isoviz.watch.watching import as_rows

__all__ = ["MEASURES", "Baseline", "Check", "Drift", "baseline", "check", "missing_notes", "read", "searches_of"]

Searches = Mapping[str, tuple[float, float, float]]
"""nDCG@10, recall@10 and MRR of each query."""

LEVEL: Final = 0.95
MOST_ROWS: Final = 2_000
MOST_BYTES: Final = 4 * 2**20
"""Most rows in a baseline, and most bytes of them in float32, but never fewer rows than `FEWEST`."""


def baseline(
    points: ArrayLike, *, ids: Iterable[Any] | None = None, seed: int = 0, searches: Searches | None = None
) -> Baseline:
    """What a later set of embeddings is compared with: a sample of at most 2,000 rows or 4 MiB, and its measures.

    Args:
        points: (n, d); the rows are independent draws from what you encode. From 40 rows on, sets are compared; from 5 on, paired rows.
        ids: n different ids, by which a later set is paired.
        seed: of the sample.
        searches: what `read` finds for relevance.

    Raises:
        InputError: (a ValueError) too few rows that are not zero, values that are not finite, identical rows, or ids that do not fit.
    """
    raw = _checked(points)
    n, d = raw.shape
    names = _checked_ids(range(1, n + 1) if ids is None else ids, n)
    nonzero = nonzero_rows(raw)
    places = nonzero[draw(len(nonzero), max(FEWEST, min(MOST_ROWS, MOST_BYTES // (4 * d))), seed)]
    rows = _drawn(raw, places)
    found = measured(rows, _groups(len(rows)))
    reach = {name: _quantile(1) * jackknife_error(found.without[name]) for name in found.values}
    return Baseline(
        n=n,
        d=d,
        zeros=n - len(nonzero),
        named=ids is not None,
        ids=[names[place] for place in places],
        vectors=Baseline.encoded(rows),
        measures={
            name: (value, max(value - reach[name], MEASURES[name].low), min(value + reach[name], MEASURES[name].high))
            for name, value in found.values.items()
        },
        missing=found.missing,
        searches=dict(searches or {}),
        versions={"isoviz": __version__, "numpy": version("numpy"), "python": platform.python_version()},
    )


def check(
    points: ArrayLike,
    baseline: Baseline | str | os.PathLike[str],
    *,
    fail_on: Mapping[str, float | None] | None = None,
    ids: Iterable[Any] | None = None,
    same_rows: bool = False,
    searches: Searches | None = None,
    slicing: Slicing | None = None,
) -> Check:
    """The drift of each measure from a baseline, with intervals, and a decision.

    Both sets are cut to equally many rows, because several measures depend on their number. Rows that are not paired are matched
    at random, which leaves intervals valid, only wider. Standard errors are those of a delete-a-group jackknife over 40 random
    groups of row pairs (Kott 2001, J. Official Statistics 17, 521–526), which repeats no row, as a bootstrap would.
    Bonferroni's correction makes the intervals of all judged measures hold together with probability 0.95.

    Args:
        points: (n, d), as for `baseline`.
        baseline: or its file.
        fail_on: judged measures and their tolerances, in the measure's own units (None: its default); None: all.
        ids: n different ids; at least 40 rows of the baseline, and half of them, must have one of these. If one of the sets has fewer
            rows, 5 are enough, and are compared row by row only.
        same_rows: pair by row number: row k is the same text in both sets.
        searches: as for `baseline`, of the same queries. Named in `fail_on` with a tolerance, they fail unless such a fall is excluded.
        slicing: slices of the new rows, whose agreement with the baseline is compared; only of paired rows.

    Raises:
        InputError: (a ValueError) as `baseline`; another width; measures that are unknown or cannot be judged here; rows that cannot
            be paired as requested.
    """
    before = baseline if isinstance(baseline, Baseline) else Baseline.read(baseline)
    tolerances = _tolerances(fail_on)
    raw, ids = _checked(points), None if ids is None else list(ids)
    if raw.shape[1] != before.d:
        raise InputError.at("vectors", f"{raw.shape[1]} dimensions, where the baseline has {before.d}")
    x, y, names = _pairs(raw, before, ids, same_rows)
    codes, paired = _groups(len(x)), same_rows or ids is not None
    old, new = measured(x, codes), measured(y, codes)
    missing = {**{name: f"in the baseline, {why}" for name, why in old.missing.items()}, **new.missing}
    found = {}  # before, after, change, standard error
    for name in old.values.keys() & new.values.keys():
        values = old.values[name], new.values[name]
        found[name] = *values, values[1] - values[0], jackknife_error(new.without[name] - old.without[name])
    for name, squares in squared_distances(x, y, codes).items() if len(x) >= FEWEST else ():
        found[name] = 0.0, math.sqrt(max(squares[0], 0.0)), squares[0], jackknife_error(squares[1:])
    verdict, lowest = "", {}
    by_slice: list[Slice] = []
    if slicing is not None and not paired:
        raise InputError.at("by", "slices are of paired rows; give ids, or --same-rows")
    if paired:
        agreed, disagreed, verdict, own = agreements(x, y, len(x) / len(raw))
        found |= {name: (1.0, value, value - 1, error) for name, (value, error) in agreed.items()}
        missing |= disagreed
        lowest = {names[row]: float(own[row]) for row in np.argsort(own, kind="stable")[: FEWEST - 1]}
        if slicing is not None:
            given = dict(
                zip(map(str, range(1, len(raw) + 1) if ids is None else ids), slicing.codes.tolist(), strict=True)
            )
            by_slice = _by_slice(given, slicing.names, dict(zip(names, own, strict=True)), before, searches)
    if searches:
        found |= _searched(before.searches, searches)
    elif before.searches:
        missing |= dict.fromkeys(SEARCHES, "the baseline was saved with pairs, which were not given")
    for name in [name for name, values in found.items() if not np.isfinite(values).all()]:
        missing[name] = "it is undefined without some of the rows"
        del found[name]
    if unjudged := [name for name in tolerances if fail_on is not None and name not in found]:
        why = missing.get(unjudged[0], f"it needs {'pairs' if unjudged[0] in SEARCHES else 'ids or same_rows'}")
        raise InputError.at("fail_on", f"{unjudged[0]} cannot be judged: {why}")
    reach = _quantile(sum(name in found for name in tolerances), min(len(x), len(searches or x)))
    drifts = [_drift(name, found[name], reach, tolerances) for name in MEASURES if name in found]
    return Check(
        drifts=drifts,
        missing=missing,
        paired=paired,
        identity=verdict,
        row_cosines=lowest,
        slices=by_slice,
        rows=len(x),
        n=(before.n, len(raw)),
        d=before.d,
        level=LEVEL,
        zeros=(before.zeros, len(raw) - len(nonzero_rows(raw))),
    )


def _by_slice(
    code: Mapping[str, int], names: list[str], cosines: Mapping[str, float], before: Baseline, searches: Searches | None
) -> list[Slice]:
    """Of each slice how well its rows agree with the baseline, and the change of its queries; `code` is the slice of each id."""
    units = {"row_cosine": (np.array(list(cosines.values())), np.array([code[name] for name in cosines]))}
    old = before.searches if searches else {}
    for place, measure in enumerate(SEARCHES if old else ()):
        changes = [(searches or {})[query][place] - values[place] for query, values in old.items()]
        units[f"change of {measure}"] = np.array(changes), np.array([code[query] for query in old])
    return slices.compared(slices.of_units(units, names), names)


def _drift(name: str, values: Sequence[float], reach: float, tolerances: Mapping[str, float | None]) -> Drift:
    before, after, change, error = values
    ends = [change - reach * error, change, change + reach * error]
    measure = MEASURES[name]
    if measure.distance:  # these are squares
        ends = [math.sqrt(max(end, 0.0)) for end in ends]
    low, change, high = np.clip(ends, measure.low - before, measure.high - before).tolist()
    given = tolerances.get(name)
    tolerance = measure.tolerance_of(before) if given is None else given
    outcome: Outcome = "within tolerance" if max(-low, 0 if measure.search else high) <= tolerance else "cannot tell"
    if (low > tolerance and not measure.search) or high < -tolerance:
        outcome = "changed"
    return Drift(
        measure=name,
        before=before,
        after=after,
        change=change,
        low=low + before * measure.agreement,
        high=high + before * measure.agreement,
        tolerance=tolerance,
        outcome=outcome if name in tolerances else "not judged",
        required=measure.search and given is not None,
    )


def _searched(old: Searches, new: Searches) -> dict[str, tuple[float, float, float, float]]:
    """Before, after, change and standard error over the queries."""
    if old.keys() != new.keys():
        problem = "has other queries" if old else "was saved without pairs; save it again with them"
        raise InputError.at("pairs", f"the baseline {problem}")
    before, after = (np.array([values[query] for query in old]) for values in (old, new))
    change = after - before
    errors = change.std(axis=0, ddof=1) / math.sqrt(len(change))
    columns = np.stack([before.mean(axis=0), after.mean(axis=0), change.mean(axis=0), errors], axis=1)
    return {name: tuple(values) for name, values in zip(SEARCHES, columns.tolist(), strict=True)}


def _tolerances(fail_on: Mapping[str, float | None] | None) -> dict[str, float | None]:
    """Judged measures and their tolerances; None for a default."""
    if fail_on is None:
        return dict.fromkeys(MEASURES)
    for name, value in fail_on.items():
        if name not in MEASURES:
            raise unknown_name("measure", name, MEASURES, field="fail_on")
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InputError.at("fail_on", f"a tolerance is a number from 0 (got {name}={value:g})")
    if not fail_on:
        raise InputError.at("fail_on", "name at least one measure")
    return dict(fail_on)


def _quantile(intervals: int, rows: int = GROUPS) -> float:
    """Student's t for so many intervals that hold together."""
    return student_quantile(1 - (1 - LEVEL) / (2 * max(1, intervals)), min(GROUPS, rows) - 1)


def _groups(n: int) -> NDArray[np.int64]:
    """(n,) the group of each row, at random."""
    return np.random.default_rng(0).permutation(np.arange(n) % GROUPS)


def _pairs(
    raw: NDArray[Any], before: Baseline, ids: Iterable[Any] | None, same_rows: bool
) -> tuple[Matrix, Matrix, list[str]]:
    """As many rows of the baseline as of the new set, paired as requested, or else at random; and the ids of these."""
    points, nonzero = before.points, nonzero_rows(raw)
    if ids is None and not same_rows:
        if (count := min(len(points), len(nonzero))) < FEWEST:
            raise InputError.at("vectors", f"expected at least {FEWEST} rows, or {CANARY} paired ones, got {count}")
        chosen = np.random.default_rng(1).choice(nonzero, count, replace=False)
        return points[draw(len(points), count)], _drawn(raw, chosen), []
    field = "ids" if ids is not None else "same_rows"
    if before.named != (field == "ids") or (ids is not None and same_rows):
        raise InputError.at(field, f"the baseline was saved with{'' if before.named else 'out'} ids")
    names = _checked_ids(range(1, len(raw) + 1) if ids is None else ids, len(raw))
    common = before.common({names[row] for row in nonzero}, named=before.named)
    if not common:
        raise InputError.at(field, "fewer than half of the baseline's rows are among these")
    place = {name: row for row, name in enumerate(names)}
    shared = [before.ids[row] for row in common]
    return points[common], _drawn(raw, np.array([place[name] for name in shared])), shared


# ------------------------------------------------------------------------------------------------------- a set's rows


def read(
    name: str | os.PathLike[str],
    column: str | None = None,
    ids: str | None = None,
    skip_bad: bool = False,
    pairs: str | None = None,
    queries: str | None = None,
    by: str | None = None,
) -> tuple[NDArray[Any], list[str] | None, Searches, Slicing | None]:
    """The vectors of a file of any format (n, d), their ids, how well they serve the queries of the file `pairs`, and slices of its rows.

    Ids are those of the column `ids`, or of a column `id` if there is one. `queries`: their vectors, if they are in a file of their own;
    the rows are then the documents, followed by these.
    """
    file = os.fspath(name)
    if vectors.reading.holds(file, "vectors") == "array" and queries is None:
        named = {"ids": ids, "pairs": pairs, "by": by}
        if field := next((option for option, value in named.items() if value is not None), None):
            raise InputError.at(field, "an array file has no columns; give a table, or pair by row number")
        return vectors.reading.array(file, column, "vectors", skip_bad), None, {}, None
    columns = vectors.Columns(points=column, id=ids, group=None if by == slices.LENGTH else by)
    found = vectors.read(file, columns, relations=pairs, questions=queries, field="vectors", skip_bad=skip_bad)
    if skipped := found.facts.get("skipped"):
        warnings.warn(f"vectors: {skipped}", stacklevel=2)
    names = [str(one) for one in found.columns["id"]] if "id" in found.columns else None
    of = None if by is None else slices.slicing(found.columns, by)
    return found.points, names, {} if pairs is None else searches_of(found), of


def searches_of(found: VectorSet) -> Searches:
    """nDCG@10, recall@10 and MRR@10 of each question of a search. Raises `InputError` (field `pairs`) for a set that is none."""
    relevance = annotations_of(replace(found, columns=found.columns.drop(columns="label", errors="ignore"))).queries
    if relevance is None or "id" not in found.columns:
        raise InputError.at("pairs", "expected columns query, document, relevance")
    names = found.columns["id"].astype(str).tolist()
    slugs = ["ndcg_cosine", "recall10_cosine", "mrr_cosine"]
    scored = retrieval.measure(Image(found.points), relevance)
    values = np.stack([cast(Mean, scored[slug]).values for slug in slugs], axis=1).tolist()
    of_queries = zip(relevance.queries, relevance.graded, strict=True)
    answered = [names[query] for query, (documents, _) in of_queries if len(documents)]
    return dict(zip(answered, map(tuple, values), strict=True))


def _checked(points: ArrayLike) -> NDArray[Any]:
    """The points (n, d), themselves if they are an array, possibly of a file."""
    given: Any = points.detach() if is_tensor(points) else points  # type: ignore[union-attr]
    raw: NDArray[Any] = given if isinstance(given, np.ndarray) and given.dtype.kind in "fiu" else as_rows(given)
    if raw.ndim != 2 or raw.shape[1] < 2 or len(raw) < CANARY:
        raise InputError.at("vectors", f"expected at least {CANARY} rows and 2 dimensions, got the shape {raw.shape}")
    arrays.check_finite(raw, "vectors")
    if (rows := len(nonzero_rows(raw))) < CANARY:
        raise InputError.at("vectors", f"expected at least {CANARY} rows that are not zero, got {rows}")
    return raw


def _drawn(raw: NDArray[Any], places: NDArray[np.int64]) -> Matrix:
    """These rows in the precision in which a baseline keeps them, as float64."""
    with np.errstate(over="ignore"):
        rows = raw[places].astype("<f4").astype(np.float64)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise InputError.at("vectors", f"row {places[bad.argmax()] + 1} has numbers above 3.4e38")
    if np.all(rows.std(axis=0) <= np.finfo(np.float32).eps * np.abs(rows.mean(axis=0))):  # up to rounding
        raise InputError.at("vectors", "all rows are identical")
    return rows


def _checked_ids(ids: Iterable[Any], n: int) -> list[str]:
    """Ids as text: n different ones."""
    names = [str(one) for one in ids]
    if len(names) != n:
        raise InputError.at("ids", f"{len(names):,} for {n:,} rows")
    if len(set(names)) < n:
        twice = next(name for row, name in enumerate(names) if name in names[:row])
        raise InputError.at("ids", f"'{shortened(twice)}' is given twice")
    return names
