"""The declaration of a metric: its texts, its properties, the clouds it applies to, its cost and its computation."""

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
"""In order: a constant vector added; one factor for all dimensions; an orthogonal transformation; one factor per dimension;
points permuted; every point repeated equally often."""
CHANGES: tuple[Change, ...] = ("shift", "scale", "rotation", "stretch", "order", "duplicates")
Bound: TypeAlias = "float | NDArray[np.float64]"
CloudKind: TypeAlias = Literal["rows", "tokens", "weights"]
"""`rows`: one vector per row, so independent points (`head`, `pooled`, a layer's pooled vectors, a file's rows).
`tokens`: every token of one layer or of all (`layer_k`, `layers`). `weights`: the rows of an output matrix."""
Cost: TypeAlias = Literal["closed form", "eigenvalues", "pairs"]
"""`closed form`: from sums over the points, O(nd²) once for all such metrics. `eigenvalues`: another O(d³). `pairs`: all pairs
of points, O(n²d); measured last if a user is waiting, and on at most `Metric.most` points."""
COSTS: tuple[Cost, ...] = ("closed form", "eigenvalues", "pairs")
RUN_INPUTS = frozenset({"shrinkage_cov", "zeta"})
"""The inputs besides the points that a run, or a chain of transforms, has: Σ_S of its training points, and ζ."""
QUICK: tuple[Cost, ...] = ("closed form", "eigenvalues")
"""Costs low enough to compute before a picture is shown."""


@dataclass(frozen=True)
class Citation:
    """text: authors and year; key: of the BibTeX entry; identifier: arXiv number, DOI, or where it appeared."""

    text: str
    key: str
    year: int
    identifier: str


@dataclass(frozen=True)
class Range:
    """The range in words, and its ends as functions of (n, d) (None: unbounded, or bounded by the data only)."""

    text: str
    low: Callable[[int, int], Bound] | None = None
    high: Callable[[int, int], Bound] | None = None


@dataclass(frozen=True)
class AtIsotropy:
    """The value of a perfectly isotropic cloud as a function of (n, d); None if there is no single value.

    of: "sample": every finite cloud whose covariance is a multiple of the identity has it exactly; "population": the value
    approached by independent points of an isotropic population; None: no single value, `text` says why.
    """

    text: str
    value: Callable[[int, int], Bound] | None = None
    of: Literal["sample", "population"] | None = None


@dataclass(frozen=True)
class EnoughPoints:
    """The n from which the mean estimate is near the population value, for independent Gaussian points.

    points: n as a function of d.
    tolerance: relative error of the mean estimate at that n, on the hardest spectrum for this metric; absolute if the true
        value is 0; for an array, the largest error divided by the largest true entry.
    bias: "falls": at a quarter of n the error of the hardest spectrum exceeds the tolerance; "none": unbiased from the
        minimum on; "saturates": holds up to 10 dimensions; in many more dimensions no practical n is enough; "exact": there is
        nothing to estimate, because the rows are the whole population; "unknown": no population value to compare with in closed
        form.
    reads: the direction of the bias from few points, for the warning at n < 5 d.
    """

    text: str
    bias: Literal["falls", "none", "saturates", "exact", "unknown"]
    points: Callable[[int], int] | None = None
    tolerance: float | None = None
    reads: Literal["low", "high"] | None = None


def constant(value: float) -> Callable[[int, int], Bound]:
    """A bound that does not depend on n or d."""
    return lambda n, d: value


def highest_rank(n: int, d: int) -> int:
    """The highest possible rank of a centred cloud."""
    return max(1, min(d, n - 1))


COVARIANCE_ONLY: frozenset[Change] = frozenset({"shift", "scale", "rotation", "order", "duplicates"})
"""Changes that leave every function of the covariance's relative eigenvalues unchanged."""


@dataclass(frozen=True)
class Reference:
    """A recorded value of a named cloud (n, d), for comparison."""

    cloud: str
    value: float
    n: int
    d: int


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number, curve or matrix computed from a cloud (n, d) or from weights (N, d). All displays take its texts, position
    and rounding from here. Five fields are required: `slug`, `title`, `sees`, `function` and `estimate`.

    Attributes:
        slug: unique name in records, JSON, tables and URLs.
        title, symbol: its names in sentences and in formulas.
        label: short heading of a column; the title if empty.
        latex: heading of a column in LaTeX; the label if empty.
        sees, blind_to: one plain sentence each on what it shows and what it misses, in terms of the picture.
        help: further explanation for its column.
        references: recorded values to compare with, highest first.
        unit: the things counted ("directions"); empty for a plain number.
        function: the public function; available in `isoviz.metrics` under its own name.
        part, options: the entry of the function's result, and the options of the call.
        inputs: names of the function's inputs besides the points.
        estimate: the number or curve of a sample (`isoviz.metrics.sample`); for a matrix, its mean off the diagonal. Undefined
            values carry their reason. None: not stored in records (one number per dimension).
        interval: the estimate's 95 % interval, if available; needs the points.
        kinds: the clouds it applies to.
        cost: cost class.
        from_sums: whether running sums are enough; otherwise the points themselves are needed.
        independent: requires independent points; for tokens it uses one per row.
        most: maximum number of points; larger clouds are subsampled with a seed.
        place: sort key in lists, ascending.
        headline: shown if there is room for only a few numbers.
        axis: suitable axis scale in a figure.
        decimals: number of decimals in a table.
        unchanged_by: all changes to which it is invariant; every other change moves it.
        jointly: the inputs that must change together with the points for `unchanged_by` to hold, if any.
        minimum, minimum_d: the fewest points and dimensions for which it is defined; with fewer it is `nan` with an
            `UndefinedWarning`.
    """

    slug: str
    title: str
    sees: str
    function: Callable[..., Any]
    estimate: Callable[[Any], Estimate] | None
    symbol: str = ""
    blind_to: str = ""
    range: Range = Range("not stated")
    at_isotropy: AtIsotropy = AtIsotropy("not stated")
    unchanged_by: frozenset[Change] = frozenset()
    enough: EnoughPoints = EnoughPoints("not stated", "unknown")
    paper: Citation = Citation("not stated", "", 0, "")
    equation: str = ""
    place: int = 1000
    label: str = ""
    latex: str = ""
    help: str = ""
    references: tuple[Reference, ...] = ()
    unit: str = ""
    minimum: int = 2
    minimum_d: int = 1
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
    def in_runs(self) -> bool:
        """Whether a run reports it as a number."""
        return self.estimate is not None and self.gives != "curve" and RUN_INPUTS.issuperset(self.inputs)

    @property
    def heading(self) -> str:
        """Of a column."""
        return self.label or self.title

    @property
    def number_title(self) -> str:
        """The decimals of the number in records, which for a matrix is its mean."""
        return self.title if self.gives == "number" else self.heading

    @property
    def tooltip(self) -> str:
        """The tooltip of its heading or number."""
        return " ".join(filter(None, (self.sees, self.blind_to, self.help, self.comparison)))

    @property
    def comparison(self) -> str:
        """The references as text; empty without any."""
        values = (f"{each.value:.2f} for {each.cloud} (n = {each.n:,}, d = {each.d:,})" for each in self.references)
        return f"For comparison: {'; '.join(values)}." if self.references else ""

    def evaluate(self, points: Points, **inputs: Any) -> Value | Array:
        """The value on a cloud or weights of shape (n, d), numpy or torch; `inputs` are passed to the public function.

        Raises:
            InputError: (a ValueError) an input named in `inputs` is missing, or the function refuses the points.
        """
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise InputError(f"{self.slug} needs {' and '.join(missing)} beside the points", field=missing[0])
        value = self.function(points, **{**self.options, **inputs})
        return value if self.part is None else value[self.part]
