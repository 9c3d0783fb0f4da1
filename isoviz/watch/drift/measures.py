"""The measures of a set without each group of its rows, distances between two sets of paired rows, and their agreement row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.intervals import left_out
from isoviz.metrics.moments import centre, eigenvalues, is_usable, unbiased_sums
from isoviz.metrics.sample import Sample
from isoviz.metrics.spectrum import effective_rank_of
from isoviz.readouts.cosines import NOISE, overlap
from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Jackknife
from isoviz.watch.measures import measures_of

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]

GROUPS: Final = 40
FEWEST: Final = GROUPS
"""Fewest rows of a set, and fewest pairs of rows with the same id."""
SAME: Final = 0.999
"""Cosine of two vectors that differ by numerical noise: half precision and 8 bits stay above it."""

SEARCHES: Final = ("ndcg10", "recall10", "mrr")
"""Means over queries of known relevance, of cosines."""


class Measure(NamedTuple):
    """How a measure is judged.

    Attributes:
        tolerance: default; a share of the baseline's value if `relative`.
        reason: what this much is.
        distance: whether it compares two sets, so that its change cannot be negative.
        agreement: whether it compares paired rows, so that it is 1 if nothing changed.
        search: whether it is a quality of search, of which only a fall is a change.
        low, high: bounds of its values.
    """

    tolerance: float
    reason: str
    relative: bool = False
    distance: bool = False
    agreement: bool = False
    search: bool = False
    low: float = -math.inf
    high: float = math.inf

    def tolerance_of(self, before: float) -> float:
        return self.tolerance * abs(before) if self.relative else self.tolerance


MEASURES: Final = {
    "isoscore_unbiased": Measure(0.2, "one in five equally wide directions lost", relative=True),
    "effective_rank": Measure(0.1, "one in ten equally wide directions lost", relative=True),
    "mean_cosine": Measure(0.05, "half of the first decimal", low=-1, high=1),
    "noise_floor": Measure(0.02, "two units of the second decimal, in which thresholds are written", low=-1, high=1),
    "uniformity": Measure(0.1, "a tenth of the mean of exp(−2‖x − y‖²)"),
    "rogue_share": Measure(0.05, "five percent of the variance"),
    "mean_shift": Measure(0.1, "its square is one percent of the variance", distance=True),
    "covariance_distance": Measure(0.2, "every vector one tenth longer", distance=True),
    "row_cosine": Measure(0.01, "an angle of eight degrees between old and new", agreement=True, low=-1, high=1),
    "neighbour_recall10": Measure(0.1, "one in ten of each row's nearest rows lost", agreement=True, low=0, high=1),
    **{name: Measure(0.01, "one point of a hundred lost", search=True, low=0, high=1) for name in SEARCHES},
}


@dataclass(frozen=True)
class Measured:
    """Values by name, the same without each group (G,), and the reasons for missing ones."""

    values: dict[str, float]
    without: dict[str, Matrix]
    missing: dict[str, str]


def measured(x: Matrix, codes: Codes) -> Measured:
    """Every measure of finite rows (n, d) of positive length.

    Args:
        codes: (n,) the group of each row, 0 … G − 1.
    """
    if len(x) < FEWEST:
        why = f"it needs at least {FEWEST} rows, got {len(x)}"
        return Measured({}, {}, {name: why for name, one in MEASURES.items() if not (one.agreement or one.search)})
    values, missing = measures_of(x)
    without = _of_directions(x, codes)
    values["noise_floor"] = without["noise_floor"][0]
    without = {name: series[1:] for name, series in without.items()}
    sample = Sample(x)
    centred = centre(x)[0]
    if "isoscore_unbiased" in values and sample.moments is not None:
        remaining = left_out(sample.moments, codes)
        u, v = unbiased_sums(remaining)
        usable = ~remaining.collapsed & is_usable(u, remaining)
        without["isoscore_unbiased"] = (np.where(usable, v, np.nan) / np.where(usable, u, 1.0) - 1) / (sample.d - 1)
    if "effective_rank" in values:
        spectra = (eigenvalues(scatter) for _, scatter in _scatters(centred, centred, codes))
        without["effective_rank"] = np.array([effective_rank_of(spectrum).value for spectrum in spectra][1:])
    if "rogue_share" in values:
        without["rogue_share"] = _rogue_shares(centred, codes)
    missing = {name: why for name, why in missing.items() if name in MEASURES}
    return Measured({name: value for name, value in values.items() if name in without}, without, missing)


def _member(codes: Codes) -> Matrix:
    """(n, G) 1 where a row is in a group."""
    return np.eye(int(codes.max()) + 1)[codes]


def _of_directions(x: Matrix, codes: Codes) -> dict[str, Matrix]:
    """Measures of cosines: of all rows, then without each group, (1 + G,)."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines, member = unit @ unit.T, _member(codes)
    count = len(x) - np.append(0, member.sum(axis=0))
    pairs = count * (count - 1)
    total = unit.sum(axis=0) - np.vstack([np.zeros(x.shape[1]), member.T @ unit])
    heat = member.T @ np.exp(4 * cosines - 4) @ member
    remaining = heat.sum() - np.append(0, 2 * heat.sum(axis=1) - heat.diagonal()) - count
    return {
        "mean_cosine": (np.einsum("gj,gj->g", total, total) - count) / pairs,
        "uniformity": np.log(remaining / pairs),
        "noise_floor": _noise_floors(cosines, codes),
    }


def _noise_floors(cosines: Matrix, codes: Codes) -> Matrix:
    """The quantile of all pairs, then without each group."""
    left, right = np.triu_indices(len(codes), 1)
    order = np.argsort(cosines[left, right])
    values, first, second = cosines[left, right][order], codes[left][order], codes[right][order]
    parts = (values, *(values[(first != g) & (second != g)] for g in range(int(codes.max()) + 1)))
    return np.array([np.interp(NOISE * (len(part) - 1), np.arange(len(part)), part) for part in parts])


def _rogue_shares(centred: Matrix, codes: Codes) -> Matrix:
    member = _member(codes)
    sums, count = member.T @ centred, len(centred) - member.sum(axis=0)[:, None]
    squares = (centred**2).sum(axis=0) - member.T @ centred**2 - sums**2 / count
    return np.asarray(squares.max(axis=1) / squares.sum(axis=1))


def _scatters(a: Matrix, b: Matrix, codes: Codes) -> Iterator[tuple[int, Matrix]]:
    """Number of rows and Σ(aᵢ − ā)(bᵢ − b̄)ᵀ of centred rows (n, p): of all, then without each group."""
    whole = a.T @ b
    yield len(a), whole
    for g in range(int(codes.max()) + 1):
        part, other = a[codes == g], b[codes == g]
        rest = len(a) - len(part)
        yield rest, whole - part.T @ other - np.outer(part.sum(axis=0), other.sum(axis=0)) / rest


# ------------------------------------------------------------------------------------------------------------ distances


def squared_distances(before: Matrix, after: Matrix, codes: Codes) -> dict[str, Matrix]:
    """Unbiased squared distances of two sets of paired rows (n, d): of all rows, then without each group, (1 + G,).

    `mean_shift`: ‖μ_B − μ_A‖²/tr Σ_A; `covariance_distance`: ‖Σ_B − Σ_A‖²_F/‖Σ_A‖²_F. Both numerators are U-statistics of the pairs
    (a_i, b_i), which need not be independent of each other: terms with the same row twice are left out.
    """
    member = _member(codes)
    step, count = after - before, len(before) - np.append(0, member.sum(axis=0))
    total = step.sum(axis=0) - np.vstack([np.zeros(before.shape[1]), member.T @ step])
    lengths = np.einsum("ij,ij->i", step, step)
    own = lengths.sum() - np.append(0, member.T @ lengths)
    shift = (np.einsum("gj,gj->g", total, total) - own) / (count * (count - 1))
    x, y = centre(before)[0], centre(after)[0]
    if 2 * len(x) < x.shape[1]:  # both lie in a space of 2n dimensions, in which all products stay
        basis = np.linalg.qr(np.vstack([x, y]).T)[0]
        x, y = x @ basis, y @ basis
    squares, traces = [], []
    scatters = zip(_scatters(x, x, codes), _scatters(y, y, codes), _scatters(x, y, codes), strict=True)
    for g, ((n, of_x), (_, of_y), (_, of_both)) in enumerate(scatters, start=-1):
        stays = codes != g  # all, for −1
        a, b = x[stays] + x[~stays].sum(axis=0) / n, y[stays] + y[~stays].sum(axis=0) / n
        old, new = _product(a, a, of_x, of_x, of_x), _product(b, b, of_y, of_y, of_y)
        both = _product(a, b, of_x, of_y, of_both)
        squares.append((old + new - 2 * both) / old if old > 0 else np.nan)
        traces.append(of_x.diagonal().sum() / (n - 1))
    return {"mean_shift": shift / np.array(traces), "covariance_distance": np.array(squares)}


def _product(a: Matrix, b: Matrix, of_a: Matrix, of_b: Matrix, of_both: Matrix) -> float:
    """Unbiased estimate of tr(Σ_A Σ_B) from centred rows (n, p) and their scatters aᵀa, bᵀb and aᵀb.

    It is the mean of ((a_i − a_j)·(b_k − b_l))²/4 over distinct rows, in closed form; for a = b the U of Himeno & Yamada (2014). The
    rows a_i and b_i need not be independent of each other.
    """
    n, diagonal = len(a), np.einsum("ij,ij->i", a, b)
    f, turned, t = float(np.vdot(of_a, of_b)), float(np.vdot(of_both, of_both.T)), float(diagonal.sum())
    sums = (n * n - 3 * n + 1) * f + turned - n * (n - 1) * float(diagonal @ diagonal) + t * t
    return sums / (n * (n - 1.0) * (n - 2) * (n - 3))


# ---------------------------------------------------------------------------------------------------------- row by row


def agreements(
    before: Matrix, after: Matrix, share: float
) -> tuple[dict[str, tuple[float, float]], dict[str, str], str, Matrix]:
    """How paired rows (n, d), a share of the set, agree: values with standard errors, reasons for missing ones, `_identity`, cosines."""
    x, y = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (before, after))
    n, own, missing = len(x), 1 - ((x - y) ** 2).sum(axis=1) / 2, dict[str, str]()  # exactly 1 for equal rows
    found = {"row_cosine": (float(own.mean()), float(own.std(ddof=1) / math.sqrt(n)))}
    recall = overlap(Image(before), Image(after))
    if n >= FEWEST and isinstance(recall, Jackknife) and recall.value is not None:
        found["neighbour_recall10"] = recall.value, recall.standard_error
    else:
        missing["neighbour_recall10"] = f"it needs at least {FEWEST} paired rows that are not equally near, got {n}"
    return found, missing, _identity(x, y, own, share), own


def _identity(x: Matrix, y: Matrix, own: Matrix, share: float) -> str:
    """Whether paired rows of length 1 come from the same model."""
    n, same, cosines = len(x), own >= SAME, x @ y.T
    changed, moved = int(n - same.sum()), int(np.count_nonzero(~same & (cosines.max(axis=0) >= SAME)))
    if not changed:
        return "same model, numerical noise at most"
    if moved > 1 and 2 * moved >= share * changed:  # the row that took a place may not be in the sample
        return f"same model, rows in another order: {moved:,} of {n:,} equal another row of the baseline"
    if 2 * changed <= n:
        return f"same model, but {changed:,} of {n:,} rows changed"
    if np.mean(cosines.argmax(axis=0) == np.arange(n)) >= 0.9 and np.median(own) >= 0.5:
        return "a related model: quantised, fine-tuned or pooled otherwise"
    apart = ~np.eye(n, dtype=bool)
    old, new = (x @ x.T)[apart], (y @ y.T)[apart]
    if np.sqrt(np.mean((new - old) ** 2)) < 0.1 * old.std():
        return "same model, rotated: rows keep their cosines with each other, not with stored vectors"
    return "another model, or other texts"
