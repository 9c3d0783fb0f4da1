"""What a cosine means for an encoder: the distribution of unrelated pairs, P(related | cosine), and thresholds that hold a precision.

    ruler = isoviz.ruler(points, pairs=[(0, 1), (2, 3)])
    ruler.read(0.62).sentence

Cosines of pairs that share a row are not independent, so every interval counts rows (or groups of rows that pairs connect), not pairs.
Rescaling a score changes no ranking and therefore no separation; centring and whitening do (`Ruler.variants`).
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError
from isoviz.metrics.copies import zeros_left_out
from isoviz.readouts.ruler.hits import measure_hits
from isoviz.readouts.ruler.pairs import FEWEST_RELATED, FEWEST_ROWS, Matrix, checked, pairs_of, relation_of
from isoviz.readouts.ruler.records import Reading, Ruler, Variant
from isoviz.readouts.ruler.related import measure_related, measure_variants

__all__ = ["LEVELS", "MOST_ROWS", "SIX_LINES", "Reading", "Ruler", "Variant", "ruler"]

MOST_ROWS: Final = 3_000
"""Most rows (of each side) of which all pairs are compared; of more, this many are drawn."""
LEVELS: Final = (0.5, 0.95, 0.99, 0.999)
_MOST_DRAWN: Final = 100_000
"""Most related pairs whose distribution is kept."""

SIX_LINES: Final = """\
import json, numpy as np
ruler = json.load(open("ruler.json"))
x = np.load("pair.npy").astype(float)
cosine = (x[0] @ x[1]) / np.linalg.norm(x[0]) / np.linalg.norm(x[1])
print(cosine, np.interp(cosine, ruler["cosine"], ruler["percentile"]))
print(ruler["related"] and np.interp(cosine, ruler["related"]["cosine"], ruler["related"]["probability"]))
"""
"""The same numbers without IsoViz."""


def ruler(
    points: ArrayLike,
    *,
    pairs: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    documents: ArrayLike | None = None,
    share: float | None = None,
    precision: float = 0.9,
    seed: int = 0,
    model: str | None = None,
    relation: str | None = None,
    cloud: Mapping[str, Any] | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> Ruler:
    """Measure what a cosine means for these vectors.

    Args:
        points: (n, d), one vector per row; rows of zeros are left out, and the record's protocol says how many.
        pairs: (m, 2), the places of related rows. If no row is on both sides (queries and documents), only pairs from one side to the
            other are compared.
        labels: n labels; rows with the same one are related. Instead of `pairs`.
        documents: (c,), the places of all documents of a search, whose `pairs` are a query and a relevant document each. `Ruler.hits`
            then says whether a query's best hit is right.
        share: of the pairs that will be compared, how many are related: the prior of every probability. None for one in two, or in a
            search for those that are: relevant pairs ÷ queries times documents.
        precision: wanted of a threshold.
        seed: of the draws.
        model: name of the encoder, kept in the record.
        relation: which pairs are related, in words, kept in the record.
        cloud: how the encoder made the vectors, kept in the record.
        progress: called with the steps done, all steps, and the current one.

    The noise floor's intervals invert a test of the distribution function (Woodruff 1952, doi:10.2307/2280781) with the effective
    number of pairs (Korn & Graubard 1998), whose variance counts rows, or groups of rows that related pairs or one text connect
    (`isoviz.statistics.dyads`). The calibration curve is isotonic; its error comes from the curves of random halves.

    Raises:
        InputError: too few rows, values that are not finite, identical rows, pairs of rows that do not exist, or a share
            or precision outside (0, 1).
    """
    x, kept = checked(points)
    for name, value in (("share", share), ("precision", precision)):
        if value is not None and not 0 < value < 1:
            raise InputError.at(name, f"must be above 0 and below 1 (got {value:g})")
    generator = np.random.default_rng(seed)
    total = len(np.asarray(points))
    related_rows = relation_of(pairs, labels, total)
    if related_rows is not None and len(kept) < total:
        related_rows = related_rows.among(kept)
        if len(related_rows.pairs) < FEWEST_RELATED:
            raise InputError.at(
                "pairs",
                f"needs at least {FEWEST_RELATED} related pairs of rows that are not zero (got {len(related_rows.pairs)})",
            )
    search = None
    if documents is not None and related_rows is not None:
        places = np.union1d(np.flatnonzero(np.isin(kept, np.asarray(documents))), related_rows.pairs[:, 1])
        search = np.unique(related_rows.pairs[:, 0]), places
        share = share or len(related_rows.pairs) / (len(search[0]) * len(places))
    progress(0, 3, "comparing all pairs")
    compared = pairs_of(x, related_rows, generator, MOST_ROWS)
    floor = compared.cosines(x)
    if len(floor.unrelated) < FEWEST_ROWS and related_rows is None:
        raise InputError.at("vectors", "nearly all rows point the same way, so there is nothing to compare")
    if len(floor.unrelated) < FEWEST_ROWS:
        raise InputError.at("pairs", "hardly any pair of rows is unrelated")
    curve = np.linspace(0, 1, 1001)
    progress(1, 3, "comparing transforms")
    variants = measure_variants(x, related_rows, generator)
    progress(2, 3, "comparing related pairs")
    related = None if related_rows is None else measure_related(x, related_rows, share or 0.5, precision, generator)
    if related is not None and related_rows is not None:
        quantiles = np.quantile(_cosines_of(x, related_rows.pairs), curve).tolist()
        related = related.model_copy(update={"quantiles": quantiles})
    how = "pairs from the left side to the right" if compared.two else "all pairs of different rows"
    drawn = f" of {compared.count:,} rows drawn with seed {seed}" if compared.sampled else ""
    return Ruler(
        n=len(x),
        d=x.shape[1],
        rows=compared.count,
        compared=len(floor.unrelated),
        sampled=compared.sampled,
        corpus=hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:32],
        protocol=f"{how}{drawn}, {'known relations left out, ' if compared.related.any() else ''}cosine of the vectors as they are"
        + (f"; {zeros}" if (zeros := zeros_left_out(total, len(x))) else ""),
        floor=[floor.level(share_below) for share_below in LEVELS],
        cosine=np.quantile(floor.unrelated, curve).tolist(),
        percentile=curve.tolist(),
        related=related,
        variants=variants,
        versions={name: version(name) for name in ("numpy", "scipy")} | {"python": platform.python_version()},
        model=model,
        relation=relation if related is not None else None,
        cloud=None if cloud is None else dict(cloud),
        hits=measure_hits(x, related_rows, *search, precision) if search and related_rows else None,
    )


def _cosines_of(x: Matrix, pairs: NDArray[np.intp]) -> Matrix:
    """The cosine of each of these pairs of rows; of many, of some that are drawn."""
    if len(pairs) > _MOST_DRAWN:
        pairs = pairs[np.random.default_rng(0).choice(len(pairs), _MOST_DRAWN, replace=False)]
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    parts = np.array_split(pairs, max(1, len(pairs) * x.shape[1] // 2**24))
    return np.concatenate([np.einsum("ij,ij->i", unit[part[:, 0]], unit[part[:, 1]]) for part in parts])
