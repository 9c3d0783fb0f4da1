"""Each row of a set of vectors: how often others find it, where it lies among them, and what it repeats.

    found = isoviz.rows(points, queries)
    found.table(found.order("hubs")[:10])

Everything is by cosine, so rows of zeros are left out. Copies of a row (`isoviz.metrics.copies`) count once, as in all measures of
neighbours; they share the numbers of the row that they repeat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import float64_matrix
from isoviz.metrics.copies import nonzero_rows, originals, zeros_left_out
from isoviz.metrics.nearest import EQUAL, Graph, lowest, mutual

K: Final = 10
"""Neighbours of a row, and documents that a search shows."""
HUB: Final = 3.0
"""Robust z of a hub, from 3 median absolute deviations, scaled as those of a normal distribution."""
_NEAR: Final = 1 - 8e-6
"""Cosine below which no row can be a copy of another: 2⁻¹¹ of the length, doubled, and rounding to single precision."""
_ROWS: Final = 512
_NUMBERS: Final = 50_000_000
"""Most rows, and most cosines, in memory at a time."""

Order = Literal["hubs", "never found", "near-duplicates"]
Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """The m rows that are not zero, of `n` given and searched by so many `queries` that are not zero (None: none were given).

    Attributes:
        row: (m,) like all others; their places among the n.
        n_k: the k-occurrence N₁₀: how many rows have it among their 10 nearest. Rows that tie for the last place share it.
        z: robust z of N₁₀: its distance from the median, in median absolute deviations · 1.4826; nan if that is 0.
        found: share of the queries that have it among the 10 nearest rows; nan without queries.
        reciprocity: share of its 10 nearest rows that have it among theirs.
        norm, to_mean: its length, and its cosine to the mean of all rows.
        dimension: local intrinsic dimension on the unit sphere, by maximum likelihood from the 10 nearest rows (Levina & Bickel 2004,
            equation 8, before its average).
        nearest, cosine: place of the nearest other row, and their cosine.
        copy_of: place of the first row that it is a copy of; its own place if of none.
    """

    n: int
    queries: int | None
    row: Places
    n_k: Floats
    z: Floats
    found: Floats
    reciprocity: Floats
    norm: Floats
    to_mean: Floats
    dimension: Floats
    nearest: Places
    cosine: Floats
    copy_of: Places

    def order(self, by: Order) -> Places:
        """Indices (of these m) that belong in a list, the most telling first.

        hubs: all, found most often first. never found: by a query, or without queries by another row. near-duplicates: copies, then
        pairs by their cosine, from the row that comes later.
        """
        often = self.n_k if self.queries is None else self.found
        own, first = self.copy_of == self.row, np.flatnonzero(self.copy_of == self.row)
        if by == "hubs":
            return first[np.argsort(-often[first], kind="stable")]
        if by == "never found":
            unfound = first[often[first] == 0]
            return unfound[np.argsort(self.cosine[unfound], kind="stable")]
        later = np.flatnonzero(~own | (self.nearest < self.row))
        return later[np.lexsort((-self.cosine[later], own[later]))]

    def among(self, places: Places) -> Rows:
        """The same for rows that are these of a larger set."""
        return replace(self, row=places[self.row], nearest=places[self.nearest], copy_of=places[self.copy_of])

    def table(self, some: Places | slice = slice(None)) -> dict[str, NDArray[Any]]:
        """Columns by heading, of some of the m rows; places count from 1, as in errors and on pages."""
        repeats = self.copy_of != self.row
        columns = {
            "row": self.row + 1,
            "share of queries": self.found,
            "N_10": self.n_k,
            "robust z": self.z,
            "reciprocity": self.reciprocity,
            "norm": self.norm,
            "cosine to mean": self.to_mean,
            "local dimension": self.dimension,
            "nearest row": self.nearest + 1,
            "cosine to nearest": self.cosine,
            "copy of": np.where(repeats, self.copy_of + 1, 0),
        }
        dropped = {"share of queries"} if self.queries is None else set()
        return {name: column[some] for name, column in columns.items() if name not in dropped}

    @property
    def sentences(self) -> tuple[str, ...]:
        """How unevenly rows are found, how many never, and how many are copies."""
        own = self.copy_of == self.row
        m, often = int(own.sum()), (self.n_k if self.queries is None else self.found)[own]
        top = -(-m // 100)
        share = np.sort(often)[::-1][:top].sum() / often.sum()
        places = "the 10 nearest rows" if self.queries is None else f"the 10 nearest rows of {self.queries:,} queries"
        never, hubs, copies = int((often == 0).sum()), int((self.z[own] > HUB).sum()), int((~own).sum())
        words = [
            f"The {top:,} {'row' if top == 1 else 'rows'} found most often take {100 * share:.1f} % of the places among {places}; "
            f"{100 * top / m:.1f} % would be even.",
            f"{hubs:,} of {m:,} rows are hubs (robust z of N₁₀ above {HUB:g}).",
            f"{never:,} ({100 * never / m:.1f} %) are never found by {'another row' if self.queries is None else 'a query'}.",
        ]
        words += [f"{copies:,} {'row is a copy' if copies == 1 else 'rows are copies'} of another."] if copies else []
        words += [f"{note}." for note in [zeros_left_out(self.n, len(self.row))] if note]
        return tuple(words)


def rows(points: ArrayLike, queries: ArrayLike | None = None) -> Rows:
    """Measures of each row: k-occurrence, reciprocity, norm, cosine to the mean, local dimension, and its nearest other row.

    One product of all pairs in single precision, in blocks; cosines closer than 1e-6 are tied. Time grows with n².

    Args:
        points: (n, d), one vector per row; at least 12 distinct ones that are not zero.
        queries: (q, d), searches of these rows.

    Raises:
        InputError: not such arrays (field `points` or `queries`), or values that are not finite.
    """
    x = float64_matrix(points)
    kept = nonzero_rows(x)
    raw = x[kept] if len(kept) < len(x) else x
    unit, norm = _unit(raw)
    first = np.arange(len(raw))
    found = _search(unit, unit, own=True) if len(raw) > K + 1 else None
    if found is None or found[1][:, 0].max() >= _NEAR:
        first = originals(raw)
    distinct = np.unique(first)
    if len(distinct) < K + 2 or not norm.all():
        raise InputError.at("points", f"needs at least {K + 2} distinct rows that are not zero, got {len(distinct)}")
    if found is None or len(distinct) < len(raw):
        found = _search(unit[distinct], unit[distinct], own=True)
    graph, cosines, near = found
    m = len(distinct)
    n_k: Floats = np.bincount(graph.to, graph.chance, m).astype(np.float64)
    apart = n_k - np.median(n_k)
    deviation = 1.4826 * float(np.median(np.abs(apart)))
    distances = np.sqrt(np.maximum(2 - 2 * cosines.astype(np.float64), 1e-7))
    with np.errstate(divide="ignore", invalid="ignore"):
        dimension = 1 / np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1)
    mean = (norm / norm.max()) @ unit
    length = float(np.linalg.norm(mean))
    count, share = None, np.full(m, np.nan)
    if queries is not None:
        asked = float64_matrix(queries, "queries")
        if asked.shape[1] != x.shape[1]:
            raise InputError.at("queries", f"{asked.shape[1]} dimensions, where the points have {x.shape[1]}")
        asked = asked[nonzero_rows(asked)]
        count = len(asked)
        hits = _search(_unit(asked)[0], unit[distinct], own=False)[0]
        share = np.bincount(hits.to, hits.chance, m) / count
    place = np.searchsorted(distinct, first)
    nearest, cosine = distinct[near[:, 0]][place], cosines[:, 0].astype(np.float64)[place]
    copies = np.flatnonzero(first != np.arange(len(raw)))
    nearest[copies], nearest[first[copies][::-1]] = first[copies], copies[::-1]  # of several copies the first
    both = np.concatenate([copies, first[copies]])
    cosine[both] = 1 - np.square(unit[both] - unit[nearest[both]]).sum(axis=1, dtype=np.float64) / 2
    return Rows(
        n=len(x),
        queries=count,
        row=kept,
        n_k=n_k[place],
        z=(apart / deviation if deviation else np.full(m, np.nan))[place],
        found=share[place],
        reciprocity=(np.bincount(graph.start, mutual(graph, m), m) / K)[place],
        norm=norm,
        to_mean=unit @ mean / length if length else np.full(len(raw), np.nan),
        dimension=dimension[place],
        nearest=kept[nearest],
        cosine=cosine,
        copy_of=kept[first],
    )


def _unit(x: Floats) -> tuple[NDArray[np.float32], Floats]:
    """Rows of length 1, and their lengths, also of a set whose squares overflow or underflow."""
    largest = float(max(x.max(), -x.min()))
    scaled = x if 1e-100 < largest < 1e100 else x / (largest or 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    unit = np.empty(x.shape, np.float32)
    np.multiply(scaled, 1 / np.maximum(lengths, 1e-300)[:, None], out=unit, casting="same_kind")
    return unit, lengths if scaled is x else lengths * largest


def _search(
    queries: NDArray[np.float32], unit: NDArray[np.float32], own: bool
) -> tuple[Graph, NDArray[np.float32], Places]:
    """Which rows (m, d) are among the `K` nearest of which queries (q, d), by chance where they tie; and the cosines and places of the
    `K` nearest (q, K), the nearest first.

    Args:
        own: the queries are the rows, which do not find themselves.
    """
    parts, cosines, places, minus = [], [], [], -unit.T
    step = max(1, min(_ROWS, _NUMBERS // len(unit)))
    for start in range(0, len(queries), step):
        scores = queries[start : start + step] @ minus
        line = np.arange(len(scores))
        if own:
            scores[line, start + line] = np.inf
        near = lowest(scores, K + 1)
        of_near = np.take_along_axis(scores, near, axis=1)
        last = of_near[:, K - 1, None]
        tied = of_near[:, K] - last[:, 0] <= EQUAL
        decided, open_ = np.flatnonzero(~tied), np.flatnonzero(tied)
        parts.append(Graph(start + np.repeat(decided, K), near[decided, :K].ravel(), np.ones(K * len(decided))))
        above, possible = scores[open_] < last[open_] - EQUAL, scores[open_] <= last[open_] + EQUAL
        certain = above.sum(axis=1, keepdims=True)
        chance = np.where(above, 1.0, (K - certain) / (possible.sum(axis=1, keepdims=True) - certain))
        at, to = np.nonzero(possible)
        parts.append(Graph(start + open_[at], to, chance[possible]))
        cosines.append(-of_near[:, :K])
        places.append(near[:, :K])
    return Graph(*map(np.concatenate, zip(*parts, strict=True))), np.concatenate(cosines), np.concatenate(places)
