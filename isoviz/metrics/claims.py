"""What a metric can claim: its range, its value at isotropy, what leaves it unchanged, how many points it wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Array, Points, Value

Change: TypeAlias = Literal["shift", "scale", "rotation", "stretch", "order", "duplicates"]
"""A constant vector added; one factor for all; an orthogonal turn; a factor for each dimension; points permuted; every
point repeated equally often."""
CHANGES: tuple[Change, ...] = ("shift", "scale", "rotation", "stretch", "order", "duplicates")
Bound: TypeAlias = float | NDArray[np.float64]


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
        nothing to estimate, the rows are all there are.
    """

    text: str
    bias: Literal["falls", "none", "saturates", "exact"]
    points: Callable[[int], int] | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Metric:
    """One number, curve or matrix that is read from a cloud (n, d) or from weights (N, d).

    slug: unique; the public function's name, or a name for a part of its result.
    sees, blind_to: one plain sentence each.
    unchanged_by: all the changes that leave it as it is; every other change moves it.
    jointly: what has to change along with the points for `unchanged_by` to hold, if anything.
    minimum, minimum_d: the fewest points and dimensions for which it is defined; below, `nan` with `UndefinedWarning`.
    differentiable: whether a tensor result carries a gradient.
    inputs: names of what `evaluate` needs beside the points.
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
    function: str
    minimum: int = 2
    minimum_d: int = 1
    differentiable: bool = False
    jointly: str = ""
    of: Literal["cloud", "weights"] = "cloud"
    gives: Literal["number", "curve", "per dimension", "per pair of dimensions"] = "number"
    inputs: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    part: int | None = None

    def evaluate(self, points: Points, **inputs: Any) -> Value | Array:
        """The value on a cloud or weights of shape (n, d), numpy or torch; `inputs` go to the public function.

        Raises:
            InputError: (a ValueError) an input named in `inputs` is missing, or the function refuses the points.
        """
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise InputError(f"{self.slug} needs {' and '.join(missing)} beside the points", field=missing[0])
        value = getattr(import_module("isoviz.metrics"), self.function)(points, **{**self.options, **inputs})
        return value if self.part is None else value[self.part]
