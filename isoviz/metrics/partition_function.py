"""I1 and I2, which measure how even the partition function Z(v) = Σ_i exp(v·w_i) is over the eigenvectors v of WᵀW; row
norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import (
    Array,
    Estimate,
    Points,
    Value,
    check_shape,
    float64_matrix,
    like,
    undefined,
    warn_undefined,
)
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant

Signs = Literal["positive", "both"]
Convention = Literal["definition", "published"]

_BLOCK = 4_000_000  # entries of W, and of W Vᵀ, in memory as float64 at a time: 32 MB

_CANCELLED = 1e-11  # a sum of coordinates below this share of their size is rounding error


class Variant(NamedTuple):
    """One variant of (I1, I2); the options of `partition`."""

    signs: Signs = "positive"
    convention: Convention = "definition"
    scale_free: bool = False


def partition(
    weights: Points,
    signs: Signs = "positive",
    convention: Convention = "definition",
    scale_free: bool = False,
) -> tuple[Value, Value]:
    """(I1, I2) of output embeddings or a classifier W (N, d): I1 = min Z/max Z, I2 = √(Σ(Z − Z̄)²/(|V| Z̄²)).

    As in Ding et al. 2022. By default neither is scale-free: shrinking W drives I1 to 1 and I2 to 0, so show
    `row_norms` beside them, or use `scale_free`. The mean of the rows dominates I1. By the definition, I2 ≤ (1 − I1)/(2√I1)
    for every W. The eigenvectors of a repeated non-zero eigenvalue are arbitrary within their space, and so are (I1, I2): an
    isotropic W has no preferred directions. In the null space Z = N for every vector, except in the published convention,
    whose rows mix the null space with the rest: with N < d the pair then depends on the solver.

    W is read in blocks of rows, so a vocabulary needs no full float64 copy; it may be a memory-mapped file.

    Args:
        weights: (N, d), rows are the vectors w_i.
        signs: an eigenvector's sign is arbitrary and Z(v) ≠ Z(−v): "positive" takes v·Σw_i >= 0, "both" takes
            v and −v. Where the rows' sum along v is only rounding error, as of centred rows, "positive" orients v by the row with
            the largest coordinate along it.
        convention: "definition" as above; "published" gives that paper's printed pairs, which are impossible
            under its own formulas: it uses the rows instead of the columns of the eigenvector matrix, and does not divide by
            |V|.
        scale_free: divide W by the root mean square of its row norms. Undefined for W = 0.

    Raises:
        InputError: (a ValueError) unknown option, wrong shape, or non-finite entries.
    """
    if signs not in ("positive", "both"):
        raise InputError(f"signs must be 'positive' or 'both', got {signs!r}")
    if convention not in ("definition", "published"):
        raise InputError(f"convention must be 'definition' or 'published', got {convention!r}")
    (pair,) = partitions(weights, [Variant(signs, convention, scale_free)])
    if pair is None:
        warn_undefined("partition", "there are no weight vectors, or all are zero and have no scale")
    i1, i2 = pair or (float("nan"), float("nan"))
    return like(weights, i1), like(weights, i2)


def partitions(
    weights: Points, readings: Sequence[Variant], tell: Callable[[int, int], None] | None = None
) -> list[tuple[float, float] | None]:
    """(I1, I2) in several variants of `partition`, from a single pass over W (N, d).

    Args:
        tell: called with the number of rows done and the total.

    Returns:
        One pair per variant; None if it is undefined (no rows, or a scale-free variant of W = 0).
    """
    matrix = _sliceable(weights)
    return _pairs(matrix, readings, tell) if len(matrix) else [None] * len(readings)


def row_norms(weights: Points) -> Array:
    """‖w_i‖ of each row of W (N, d), shape (N,). I1 and I2 depend on it most, so show it beside them. Finite for finite rows
    unless the norm itself overflows float64.
    """
    norms = [np.zeros(0)]
    for w in _blocks(_sliceable(weights)):
        biggest = np.abs(w).max(axis=1)
        unit = w / np.where(biggest > 0, biggest, 1.0)[:, None]
        norms.append(biggest * np.sqrt(np.einsum("ij,ij->i", unit, unit)))
    return like(weights, np.concatenate(norms))


def _sliceable(weights: Points) -> Any:
    """A matrix whose rows can be sliced, so that it need not be converted to float64 in full."""
    matrix = weights if hasattr(weights, "shape") else float64_matrix(weights, "weights")
    check_shape(tuple(matrix.shape), "weights")
    return matrix


def _blocks(weights: Any, width: int = 0) -> Iterator[NDArray[np.float64]]:
    """The rows in float64, in blocks chosen so that neither they nor their products with `width` vectors exceed `_BLOCK`."""
    count, d = weights.shape
    step = max(1, _BLOCK // max(d, width))
    for start in range(0, count, step):
        name = "weights" if count <= step else f"weights[{start}:{min(start + step, count)}]"
        yield float64_matrix(weights[start : start + step], name)


def _pairs(
    weights: Any, readings: Sequence[Variant], tell: Callable[[int, int], None] | None = None
) -> list[tuple[float, float] | None]:
    """(I1, I2) in each variant; None where it is undefined."""
    count, d = weights.shape
    gram, total = np.zeros((d, d)), np.zeros(d)
    for block in _blocks(weights):
        gram += block.T @ block
        total += block.sum(axis=0)
    # eigh, never eig: N < d implies repeated eigenvalues, for which eig's vectors are not orthogonal
    values, vectors = map(np.asarray, np.linalg.eigh(gram))
    along = total @ vectors
    cancelled = np.abs(along) <= _CANCELLED * np.sqrt(count * np.maximum(values, 0.0))
    cancelled &= values > d * np.finfo(np.float64).eps * values[-1]
    if cancelled.any():
        along = np.where(cancelled, _furthest(weights, vectors), along)
    vectors = vectors * np.where(along < 0, -1.0, 1.0)
    length = float(np.sqrt(np.trace(gram) / count))
    log_z: dict[Variant, Any] = {one: -np.inf for one in readings if length or not one.scale_free}
    variants = dict.fromkeys((reading.signs, reading.convention) for reading in log_z)
    done = 0
    for block in _blocks(weights, 2 * d):
        for signs, convention in variants:
            logits = block @ (vectors.T if convention == "published" else vectors)
            logits = np.concatenate([logits, -logits], axis=1) if signs == "both" else logits
            for reading in log_z:
                if (reading.signs, reading.convention) == (signs, convention):
                    of_block = _log_sum(logits * (1 / length if reading.scale_free else 1.0))
                    log_z[reading] = np.logaddexp(log_z[reading], of_block)
        done += len(block)
        if tell:
            tell(done, count)
    return [_pair(log_z[one], one.convention) if one in log_z else None for one in readings]


def _pair(log_z: NDArray[np.float64], convention: Convention) -> tuple[float, float]:
    relative = np.exp(log_z - log_z.max())  # plain exp(v·w) overflows on hidden states
    mean = relative.mean()
    squares = float(((relative - mean) ** 2).sum()) / mean**2
    return float(relative.min()), float(np.sqrt(squares if convention == "published" else squares / len(log_z)))


def _furthest(weights: Any, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each column of `vectors`, the row coordinate along it that is largest in absolute value, with its sign."""
    extremes = np.zeros(len(vectors))
    for block in _blocks(weights):
        reach = block @ vectors
        furthest = np.take_along_axis(reach, np.abs(reach).argmax(axis=0)[None], axis=0)[0]
        extremes = np.where(np.abs(furthest) > np.abs(extremes), furthest, extremes)
    return extremes


def _log_sum(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ_i exp of each column of (rows, columns), which are overwritten."""
    top = logits.max(axis=0)
    logits -= top
    logarithms: NDArray[np.float64] = top + np.log(np.exp(logits, out=logits).sum(axis=0))
    return logarithms


# ------------------------------------------------------------------------------------------------- catalogue


class WeightSample:
    """The rows of an output matrix (N, d) for `I1` and `I2`; both come from a single pass."""

    def __init__(self, weights: Points) -> None:
        self.weights = _sliceable(weights)
        self.n, self.d = self.weights.shape

    @cached_property
    def pair(self) -> tuple[float, float] | None:
        """(I1, I2); None without rows."""
        return partitions(self.weights, [Variant()])[0]


def _part(place: int) -> Callable[[WeightSample], Estimate]:
    def estimate(sample: WeightSample) -> Estimate:
        return undefined("there are no weight vectors") if sample.pair is None else Estimate(sample.pair[place])

    return estimate


I1 = Metric(
    slug="i1",
    place=54,
    title="Partition isotropy I1",
    label="I₁",
    latex="$I_1$",
    symbol="I₁",
    sees="How even the partition function of the output embeddings is between its lowest and highest principal direction.",
    blind_to="Cannot separate shape from scale: merely shrinking the rows drives it to isotropy, and the mean dominates it.",
    range=Range("0 … 1", constant(0.0), constant(1.0)),
    at_isotropy=AtIsotropy("1, but any W with short enough rows reaches it too"),
    unchanged_by=frozenset({"rotation", "order", "duplicates"}),
    enough=EnoughPoints("exact: the matrix has no other rows", "exact"),
    paper=Citation("Arora et al. 2016", "arora2016latent", 2016, "arXiv:1502.03520"),
    equation=r"I_1 = \min_v Z(v) / \max_v Z(v), \quad Z(v) = \sum_i \exp(v^\top w_i)",
    function=partition,
    estimate=_part(0),
    minimum=1,
    kinds=frozenset({"weights"}),
    part=0,
    cost="eigenvalues",
    from_sums=False,
)

I2 = replace(
    I1,
    slug="i2",
    place=55,
    title="Partition isotropy I2",
    label="I₂",
    latex="$I_2$",
    symbol="I₂",
    sees="How much the partition function of the output embeddings varies over the principal directions.",
    range=Range("0 … √(d − 1), at most (1 − I₁)/(2√I₁)", constant(0.0), lambda n, d: math.sqrt(d - 1) * (1 + 1e-12)),
    at_isotropy=AtIsotropy("0, but any W with short enough rows reaches it too"),
    paper=Citation("Wang et al. 2020", "wang2020spectrum", 2020, "openreview:ByxY8CNtvr"),
    equation=r"I_2 = \sqrt{\frac{\sum_v (Z(v) - \bar Z)^2}{|V| \, \bar Z^2}}",
    estimate=_part(1),
    part=1,
)

METRICS = (I1, I2)
