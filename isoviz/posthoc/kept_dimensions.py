"""Some dimensions of each vector, unchanged: the first k, a random share, or all but one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper, Params, parameter


class TruncationParams(Params):
    keep: int | None = parameter(
        None,
        label="Dimensions kept",
        symbol="k",
        help="Number of leading dimensions to keep. Empty keeps all.",
        source="Kusupati et al. 2022, section 3",
        sweep=(64, 128, 256),
        ge=1,
    )


class Truncation(CataloguedTransform):
    """y = (x_1, …, x_k). Learnt: `matrix` (d, k), which depends only on the width of the fit set."""

    slug = "truncation"
    title = "Truncation"
    summary = "Keeps the first k dimensions unchanged. Models trained for truncation (Matryoshka) lose little."
    equation = r"y = (x_1, \dots, x_k)"
    paper = Paper("Kusupati et al. 2022", entries()["kusupati2022matryoshka"])
    Params = TruncationParams
    params: TruncationParams
    traps = (
        "Unless the model was trained for truncation, the first dimensions are no better than any others. PCA whitening keeps "
        "the directions that vary most.",
        "Vectors of length 1 become shorter: use cosine similarity, or normalise again.",
    )
    training = "a head in training can read any dimensions; Matryoshka losses train an encoder for truncation"
    ARRAYS = {"matrix": "dk"}
    coordinates = "own"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        return Learnt({"matrix": np.eye(x.shape[1])[:, self._kept(x.shape[1])]})

    def image_width(self, d: int) -> int:
        count = d if self.params.keep is None else self.params.keep
        if count > d:
            raise InputError(f"keep must be at most {d}, the dimensions of the points, got {count}")
        return count

    def _kept(self, d: int) -> NDArray[np.int64]:
        """The dimensions to keep, ascending."""
        return np.arange(self.image_width(d))

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        kept = self._kept(cloud.width)
        factors = np.isin(np.arange(cloud.width), kept).astype(np.float64)
        return replace(cloud.scaled(factors, mean=cloud.mean[kept]), basis=np.eye(cloud.width)[kept])


class RandomDimensionsParams(Params):
    drop: float = parameter(
        0.5,
        label="Share dropped",
        symbol="p",
        help="Share of the dimensions to drop, rounded to whole dimensions; at least one stays.",
        source="Takeshita et al. 2025: up to 0.5 costs less than 10 % on their tasks",
        sweep=(0.25, 0.5, 0.75),
        suggested=True,
        ge=0,
        le=1,
        slider=(0.0, 0.95, 0.05),
    )
    seed: int = parameter(
        0,
        label="Seed",
        help="Draws the dimensions; compare several.",
        source="Takeshita et al. 2025 repeat each share ten times",
        ge=0,
        le=2**31 - 1,
    )


class RandomDimensions(Truncation):
    """y = the dimensions of x in a random set of d − round(p·d), at least one, in their order. Learnt: `matrix` (d, k), which depends
    only on the width of the fit set, the share and the seed.
    """

    slug = "random_dimensions"
    title = "Random dimensions dropped"
    summary = "Drops a random share of the dimensions and keeps the others unchanged."
    equation = r"y = (x_i)_{i \in K},\quad |K| = \max(1,\, d - \mathrm{round}(p\,d))"
    paper = Paper("Takeshita et al. 2025", entries()["takeshita2025randomly"])
    Params = RandomDimensionsParams  # type: ignore[assignment]
    params: RandomDimensionsParams  # type: ignore[assignment]
    traps = (
        "One draw says little: compare several seeds.",
        "If a few dimensions dominate, the effect depends on whether they are among the dropped ones.",
    )
    training = "a head in training can read any dimensions"

    def image_width(self, d: int) -> int:
        return max(1, d - round(self.params.drop * d))

    def _kept(self, d: int) -> NDArray[np.int64]:
        return np.sort(np.random.default_rng(self.params.seed).permutation(d)[: self.image_width(d)])


class WithoutDimensionParams(Params):
    dimension: int = parameter(
        0,
        label="Dimension",
        symbol="i",
        help="Number of the dimension to drop, from 0.",
        source="Takeshita et al. 2025",
        ge=0,
    )


class WithoutDimension(Truncation):
    """y = x without dimension i; an only dimension stays. Learnt: `matrix` (d, d − 1), which depends only on the width of the fit set."""

    slug = "without_dimension"
    title = "One dimension dropped"
    summary = "Drops one dimension."
    equation = r"y = (x_1, \dots, x_{i-1}, x_{i+1}, \dots, x_d)"
    paper = Paper("Takeshita et al. 2025", entries()["takeshita2025randomly"])
    Params = WithoutDimensionParams  # type: ignore[assignment]
    params: WithoutDimensionParams  # type: ignore[assignment]
    traps = (
        "Some dimensions raise a read-out by chance when they are dropped: with 95 % intervals about one in 40 does so significantly.",
        "Effects of single dimensions do not add up: two dimensions with the same content replace each other.",
    )
    training = "a head in training can read any dimensions"

    def image_width(self, d: int) -> int:
        if self.params.dimension >= d:
            raise InputError(f"dimension must be below {d}, the dimensions of the points, got {self.params.dimension}")
        return max(1, d - 1)

    def _kept(self, d: int) -> NDArray[np.int64]:
        self.image_width(d)
        return np.arange(d) if d == 1 else np.delete(np.arange(d), self.params.dimension)
