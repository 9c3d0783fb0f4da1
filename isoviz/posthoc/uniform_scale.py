"""Multiplication of every coordinate by the same factor, a change of unit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.isoscore_paper import ISOSCORE_PAPER
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Params, parameter


class ScaleParams(Params):
    """Parameters of a scaling."""

    factor: float = parameter(
        2.0,
        label="Factor",
        symbol="c",
        help="Multiplies every coordinate, about the origin. 1 changes nothing.",
        source="Rudman et al. 2022, section 3 (an isotropy score should not depend on the unit)",
        ge=1e-6,
        le=1e6,
        stops=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100),
    )


class Scale(CataloguedTransform):
    """y = c·x. Learnt: `scale` (d,), which depends only on the width of the fit set."""

    slug = "scale"
    title = "Scale"
    summary = "Multiplies every coordinate by the same factor."
    equation = r"y = c\,x"
    paper = ISOSCORE_PAPER
    Params = ScaleParams
    params: ScaleParams
    traps = ("A trained classifier keeps its bias, so its decisions change although the shape of the cloud does not.",)
    effects = Effects(
        isoscore="unchanged",
        ev="unchanged",
        mean_cosine="unchanged",
    )
    ARRAYS = {"scale": "d"}
    coordinates = "any"
    reads = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        return Learnt({"scale": np.full(x.shape[1], self.params.factor)})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return x * learnt["scale"]

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.scaled(self.params.factor, mean=cloud.mean * self.params.factor)

    @classmethod
    def in_training(cls, params: Any) -> str:
        return "a head in training absorbs the unit into its weights; the effect is that of a different learning rate"

    def affine(self) -> Affine:
        scale = self.learnt.arrays["scale"]
        return Affine(scale, np.zeros_like(scale))
