"""Batch normalisation without its affine part: centres each dimension and divides it by its standard deviation."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from isoviz.methods import batchnorm as methods
from isoviz.metrics.dimensions import dimension_std
from isoviz.metrics.moments import centre
from isoviz.posthoc.directions import SMALLEST
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Effects, InTraining, Learnt, Paper, Params, parameter


class BatchNormParams(Params):
    """Parameters of batch normalisation."""

    eps: float = parameter(
        1e-5,
        label="Floor",
        symbol="ε",
        help=(
            "Added to the variance under the root. Dimensions with a standard deviation far below √ε end up below unit "
            "variance."
        ),
        source="Ioffe & Szegedy 2015, algorithm 1; the usual default in frameworks",
        ge=0,
        le=1e6,
    )


class BatchNorm(CataloguedTransform):
    """y = (x − μ)/√(σ² + ε) in each dimension; population variance (divisor n), no affine part.

    Learnt: `mean` (d,), `scale` (d,). With ε = 0 a dimension without variance maps to 0.
    """

    slug = "batch_norm"
    title = "Batch normalisation"
    summary = "Centres every dimension and divides it by its standard deviation."
    equation = r"y_i = (x_i - \mu_i) / \sqrt{\sigma_i^2 + \epsilon}"
    paper = cast(Paper, methods.BatchNorm.paper)  # only the baseline has none
    Params = BatchNormParams
    params: BatchNormParams
    traps = (
        "Correlations do not change, so correlated dimensions still share one dominant direction.",
        "Dimensions that hardly vary hold rounding noise, which grows by up to 1/√ε (316) times; see `tiny_dimensions`.",
    )
    effects = Effects(
        isoscore="that of the correlation matrix: up or down",
        ev="that of the correlation matrix",
        mean_cosine="centred",
    )
    ARRAYS = {"mean": "d", "scale": "d"}
    COUNTS = ("tiny_dimensions",)
    coordinates = "own"
    reads = "population"
    training = InTraining(
        "batchnorm", {}, "In training the statistics come from batches, and the floor is the method's fixed 1e-5."
    )

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        _, mean = centre(x)
        std = np.asarray(dimension_std(x))
        scale = self._scale(std, mean, eps)
        tiny = int(np.count_nonzero(std <= 1e-6 * np.median(std)))
        return Learnt({"mean": mean, "scale": scale}, {"tiny_dimensions": tiny})

    def _scale(self, std: NDArray[np.float64], mean: NDArray[np.float64], eps: float) -> NDArray[np.float64]:
        spread = np.hypot(std, np.sqrt(self.params.eps))
        if self.params.eps == 0:
            spread = np.where(std > eps * np.abs(mean), std, 0.0)  # a spread below the input's rounding counts as 0
        scale: NDArray[np.float64] = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > SMALLEST)
        return scale

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.scaled(self._scale(cloud.std, cloud.mean, cloud.resolution), mean=np.zeros(cloud.width))

    @property
    def tiny_dimensions(self) -> int:
        """Number of dimensions with a σ of at most 1e-6 of the median σ."""
        return self.learnt.counts["tiny_dimensions"]
