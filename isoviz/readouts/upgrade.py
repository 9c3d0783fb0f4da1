"""Upgrading an encoder without embedding again: stored vectors mapped to the new encoder's, judged on rows that did not fit the map.

New queries search the mapped old vectors. The ranking that counts is that of the new encoder's own vectors: recall@10 of its neighbours.
Drift-Adapter (Vejendla 2025, arXiv:2509.23471) maps the queries instead; for an orthogonal map of equal widths, both give the same
cosines up to the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import draw, float64_matrix
from isoviz.metrics.copies import comparable_rows, nonzero_rows, zeros_left_out
from isoviz.metrics.moments import centre
from isoviz.posthoc.protocol import Affine
from isoviz.readouts.cosines import Cosine, neighbour_recall, shares_kept
from isoviz.readouts.image import MOST_PAIRED, Image
from isoviz.statistics.paired_bootstrap import Difference, Mean, Statistic, difference, interval

Map = Literal["procrustes", "ridge"]
MOST_FIT: Final = 20_000
"""Most rows that a map is fitted on."""
FEWEST: Final = 24
"""Fewest rows: each half must have more rows than the neighbours that are looked for."""
_PENALTIES: Final = np.logspace(-6, 2, 9)
"""Penalties of the ridge map, in units of the mean squared singular value, among which leave-one-out validation chooses."""


@dataclass(frozen=True)
class Upgrade:
    """Recall@10 of the new vectors' neighbours.

    Attributes:
        affine: the map, fitted on rows of both halves.
        mapped: new queries among mapped old vectors, with the map fitted on the other half of the rows, for both halves.
        old: old queries among old vectors: what keeping the old encoder gives.
        gain: `mapped` − `old`, with a paired interval. The maps are held fixed.
        crossed: (n, d') old vectors, those of each half by the map of the other.
        notes: sentences on rows that were left out.
    """

    affine: Affine
    mapped: Difference
    old: Difference
    gain: Difference
    crossed: NDArray[Any]
    notes: tuple[str, ...] = ()


def fit(old: NDArray[Any], new: NDArray[Any], kind: Map) -> Affine:
    """The map x ↦ xA + b from old (n, d) to new (n, d') vectors of the same rows.

    procrustes: A = cUVᵀ from the singular value decomposition UΣVᵀ of the product of both centred sets, without directions of σ = 0,
    and c = tr Σ/‖XUVᵀ‖² (Schönemann & Carroll 1970). It is orthogonal up to c for equal widths; from narrow to wide it is the best map
    with orthonormal rows; from wide to narrow, its columns are orthonormal. ridge: least squares with an L2 penalty.
    """
    (x, mean), (y, target) = centre(float64_matrix(old)), centre(float64_matrix(new))
    if kind == "ridge":
        from sklearn.linear_model import RidgeCV

        unit = float(np.einsum("ij,ij->", x, x)) / x.shape[1] or 1.0
        matrix = np.asarray(RidgeCV(alphas=unit * _PENALTIES, fit_intercept=False).fit(x, y).coef_, np.float64).T
        matrix = matrix.reshape(x.shape[1], y.shape[1])
    else:
        u, lengths, v = np.linalg.svd(x.T @ y, full_matrices=False)
        rank = int(np.count_nonzero(lengths > max(x.shape[1], y.shape[1]) * np.finfo(np.float64).eps * lengths[0]))
        rotation = u[:, :rank] @ v[:rank]
        rotated = x @ rotation
        size = float(np.einsum("ij,ij->", rotated, rotated))
        matrix = rotation * (float(lengths[:rank].sum()) / size if size else 0.0)
    return Affine(matrix, target - mean @ matrix)


def upgrade(
    old: NDArray[Any],
    new: NDArray[Any],
    kind: Map = "procrustes",
    questions: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Upgrade:
    """What recall of neighbours survives if stored vectors are mapped instead of made again.

    Rows are halved at random (seed 0). At most 20,000 rows fit a map, and at most 1,500 rows of a half are measured. With questions,
    their ten nearest rows among all are looked for, each row mapped by the other half's map.

    Args:
        old, new: (n, d) and (n, d') vectors of the same rows, in the same order.
        questions: (q, d) and (q, d') vectors of the same questions.

    Raises:
        InputError: different numbers of rows, or fewer than 24 (field `new`); questions that do not fit or fewer than 12 (`queries`).
    """
    if kind not in get_args(Map):
        raise InputError.at("map", f"no map '{kind}' (allowed: {', '.join(get_args(Map))})")
    if len(new) != len(old) or len(old) < FEWEST:
        raise InputError.at("new", f"at least {FEWEST} rows, as many as old; got {len(old):,} old and {len(new):,} new")
    if questions is not None:
        sizes, expected = [one.shape for one in questions], [(len(questions[0]), one.shape[1]) for one in (old, new)]
        if sizes != expected or sizes[0][0] < FEWEST // 2:
            got = " and ".join(map(str, sizes))
            raise InputError.at("queries", f"at least {FEWEST // 2}, the same by both encoders; got {got} numbers")
    every, (kept, notes) = old, _comparable(old, new)
    old, new = old[kept], new[kept]
    n, crossed = len(old), np.empty(new.shape)
    of_mapped: list[tuple[Cosine, Cosine]] = []
    of_old: list[tuple[Cosine, Cosine]] = []
    halves = np.array_split(np.random.default_rng(0).permutation(n), 2)
    for fitted, held_out in (halves, halves[::-1]):
        fitted = fitted[:MOST_FIT]  # in random order
        measured = np.sort(held_out[draw(len(held_out), MOST_PAIRED)])
        stored, renewed = Image(old[measured]), Image(new[measured])
        crossed[held_out] = fit(old[fitted], new[fitted], kind).of_points(float64_matrix(old[held_out]))
        mapped = Image(crossed[measured])
        found = renewed.unit @ mapped.unit.T
        np.fill_diagonal(found, -np.inf)
        of_mapped.append((renewed.others, found))
        of_old.append((renewed.others, stored.others))
    before: Statistic = neighbour_recall(of_old)
    after: Statistic = neighbour_recall(of_mapped)
    if questions is not None:
        known, asked = (Image(one).unit for one in questions)
        wanted = asked @ Image(new).unit.T
        before = Mean(shares_kept(wanted, known @ Image(old).unit.T))
        after = Mean(shares_kept(wanted, asked @ Image(crossed).unit.T))
    some = draw(n, MOST_FIT)
    affine = fit(old[some], new[some], kind)
    mapped_rows = np.asarray(affine.of_points(float64_matrix(every)))
    mapped_rows[kept] = crossed
    return Upgrade(affine, interval(after), interval(before), difference(before, after), mapped_rows, notes)


def _comparable(old: NDArray[Any], new: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The rows that are zero in neither set, without copies among the new ones; of very many rows, some."""
    kept = np.intersect1d(nonzero_rows(old), nonzero_rows(new))
    notes = [f"{note}." for note in [zeros_left_out(len(old), len(kept))] if note]
    kept = kept[draw(len(kept), 2 * MOST_FIT)]
    rows, copies = comparable_rows(new[kept])
    kept = kept[rows]
    if len(kept) < FEWEST:
        found = f"at least {FEWEST} rows must be distinct and not zero; got {len(kept):,} of {len(old):,}"
        raise InputError.at("new", found)
    return kept, (*notes, *copies)
