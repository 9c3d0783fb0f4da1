"""The declaration of a metric: its texts, its claims, the clouds it applies to, its cost and its computation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isoviz.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isoviz.metrics.cloud import Array, Estimate, Points, Value
    from isoviz.metrics.intervals import Interval

Change: TypeAlias = Literal["shift", "scale", "rotation", "stretch", "order", "duplicates"]
"""A constant vector added; one factor for all; an orthogonal turn; a factor for each dimension; points permuted; every
point repeated equally often."""
CHANGES: tuple[Change, ...] = ("shift", "scale", "rotation", "stretch", "order", "duplicates")
Bound: TypeAlias = "float | NDArray[np.float64]"
CloudKind: TypeAlias = Literal["rows", "tokens", "weights"]
"""`rows`: one vector per row, hence independent points (`head`, `pooled`, a layer's pooled vectors, a file's rows).
`tokens`: every token of one layer or of all (`layer_k`, `layers`). `weights`: the rows of an output matrix."""
Cost: TypeAlias = Literal["closed form", "eigenvalues", "pairs"]
"""`closed form`: from sums over the points, O(nd²) once for all. `eigenvalues`: O(d³) more. `pairs`: all pairs of points,
O(n²d): measured last where someone waits, and on at most `Metric.most` points."""
COSTS: tuple[Cost, ...] = ("closed form", "eigenvalues", "pairs")
QUICK: tuple[Cost, ...] = ("closed form", "eigenvalues")
"""What a picture does not wait for long."""


@dataclass(frozen=True)
class Citation:
    """text: authors and year; key: of the BibTeX entry; identifier: arXiv number, DOI, or where it appeared."""

    text: str
    key: str
    year: int
    identifier: str


@dataclass(frozen=True)
class Range:
    """In words, and as functions of (n, d) where numbers exist (None: unbounded, or bounded by the data only)."""

    text: str
    low: Callable[[int, int], Bound] | None = None
    high: Callable[[int, int], Bound] | None = None


@dataclass(frozen=True)
class AtIsotropy:
    """The value of a perfectly isotropic cloud as a function of (n, d); None where there is no single one.

    of: "sample": every finite cloud whose covariance is a multiple of the identity has it exactly; "population": it is
        what independent points of an isotropic population tend to; None: no single value, `text` says why.
    """

    text: str
    value: Callable[[int, int], Bound] | None = None
    of: Literal["sample", "population"] | None = None


@dataclass(frozen=True)
class EnoughPoints:
    """From which n on the mean estimate is near the value of the population, for independent Gaussian points.

    points: n as a function of d.
    tolerance: relative error of the mean estimate at that n, on the spectrum that is hardest for this metric; for an
        array, the largest error over the largest true entry.
    bias: "falls": at a quarter of n the error of the hardest spectrum exceeds the tolerance; "none": unbiased from the
        minimum on; "saturates": holds up to 10 dimensions, far beyond them no practical n is enough; "exact": there is
        nothing to estimate, the rows are all there are; "unknown": no population value to compare with in closed form.
    reads: which way few points pull it, as a table warns for n < 5 d.
    """

    text: str
    bias: Literal["falls", "none", "saturates", "exact", "unknown"]
    points: Callable[[int], int] | None = None
    tolerance: float | None = None
    reads: Literal["low", "high"] | None = None


def constant(value: float) -> Callable[[int, int], Bound]:
    """A bound that depends neither on n nor on d."""
    return lambda n, d: value


def highest_rank(n: int, d: int) -> int:
    """The highest rank that a centred cloud can have."""
    return max(1, min(d, n - 1))


COVARIANCE_ONLY: frozenset[Change] = frozenset({"shift", "scale", "rotation", "order", "duplicates"})
"""Changes that leave every function of the covariance's relative eigenvalues unchanged."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number, curve or matrix that is read from a cloud (n, d) or from weights (N, d).

    Everything that shows a number draws its words, place and rounding from here.

    Attributes:
        slug: unique; its name in records, JSON, tables and addresses.
        title, symbol: as in a sentence, as in a formula.
        label: short heading of a column; the title if empty.
        latex: heading of a column in LaTeX; the label if empty.
        sees, blind_to: one plain sentence each, in terms of the picture.
        help: what a reader of its column needs beyond that.
        unit: what it counts ("directions"), empty for a plain number.
        function: the public function; `isoviz.metrics` offers it under its own name.
        part, options: which entry of the function's result it is, and with which options.
        inputs: names of what the function needs beside the points.
        estimate: the number or curve of a sample (`isoviz.metrics.sample`); of a matrix, its mean off the diagonal. Undefined
            values carry their reason. None: records do not hold it (one number per dimension).
        interval: of the estimate at 95 %, where there is one; needs the points.
        kinds: clouds that it applies to.
        cost: what it takes.
        from_sums: running sums over the points are enough; else the points themselves are needed.
        independent: right for independent points only; of tokens it is taken on one per row.
        most: points that it is taken on at most; larger clouds are subsampled with a seed.
        place: where it stands in lists, ascending.
        headline: shown where there is room for a few numbers only.
        axis: scale that suits it in a figure.
        decimals: that a table shows.
        unchanged_by: all the changes that leave it as it is; every other change moves it.
        jointly: what has to change along with the points for `unchanged_by` to hold, if anything.
        minimum, minimum_d: the fewest points and dimensions for which it is defined; below, `nan` with `UndefinedWarning`.
        differentiable: whether a tensor result carries a gradient.
    """

    slug: str
    title: str
    symbol: str
    sees: str
    blind_to: str
    range: Range
    at_isotropy: AtIsotropy
    unchanged_by: frozenset[Change]
    enough: EnoughPoints
    paper: Citation
    equation: str
    function: Callable[..., Any]
    estimate: Callable[[Any], Estimate] | None
    place: int = 1000
    label: str = ""
    latex: str = ""
    help: str = ""
    unit: str = ""
    minimum: int = 2
    minimum_d: int = 1
    differentiable: bool = False
    jointly: str = ""
    gives: Literal["number", "curve", "per dimension", "per pair of dimensions"] = "number"
    inputs: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    part: int | None = None
    interval: Callable[[Any], Interval] | None = None
    kinds: frozenset[CloudKind] = frozenset({"rows", "tokens"})
    cost: Cost = "closed form"
    from_sums: bool = True
    independent: bool = False
    most: int | None = None
    headline: bool = False
    axis: Literal["linear", "log"] = "linear"
    decimals: int = 3

    @property
    def heading(self) -> str:
        """Of a column."""
        return self.label or self.title

    @property
    def number_title(self) -> str:
        """Of the number that records hold, which of a matrix is its mean."""
        return self.title if self.gives == "number" else self.heading

    @property
    def tooltip(self) -> str:
        """The tooltip of a heading or number."""
        return " ".join(filter(None, (self.sees, self.blind_to, self.help)))

    def evaluate(self, points: Points, **inputs: Any) -> Value | Array:
        """The value on a cloud or weights of shape (n, d), numpy or torch; `inputs` go to the public function.

        Raises:
            InputError: (a ValueError) an input named in `inputs` is missing, or the function refuses the points.
        """
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise InputError(f"{self.slug} needs {' and '.join(missing)} beside the points", field=missing[0])
        value = self.function(points, **{**self.options, **inputs})
        return value if self.part is None else value[self.part]
