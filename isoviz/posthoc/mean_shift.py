"""A shift of the whole cloud along the diagonal, in units of its own spread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.dimensions import dimension_std
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.isoscore_paper import ISOSCORE_PAPER
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Params, parameter


class ShiftParams(Params):
    """Parameters of a shift."""

    by: float = parameter(
        1.0,
        label="Shift",
        symbol="t",
        help="Added to every dimension, in units of the dimensions' root-mean-square standard deviation. 0 changes nothing.",
        source="Rudman et al. 2022, section 3 (an isotropy score should not depend on the mean)",
        ge=-100,
        le=100,
        slider=(-10, 10, 0.25),
    )


class Shift(CataloguedTransform):
    """y = x + t·σ̄·1, where σ̄ is the root mean square of the dimensions' population σ. Learnt: `offset` (d,)."""

    slug = "shift"
    title = "Mean shift"
    summary = "Moves the whole cloud by the same amount in every dimension."
    equation = r"y = x + t\,\bar\sigma\,\mathbf 1,\quad \bar\sigma^2 = \tfrac1d \sum_j \sigma_j^2"
    paper = ISOSCORE_PAPER
    Params = ShiftParams
    params: ShiftParams
    traps = (
        "Only quantities measured from the origin change: cosines and a trained classifier's output change, IsoScore does not.",
    )
    effects = Effects(
        isoscore="unchanged",
        ev="unchanged",
        mean_cosine="tends to 1 as |t| grows; **not centred**",
    )
    ARRAYS = {"offset": "d"}
    coordinates = "any"
    reads = "population"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        std = np.asarray(dimension_std(x))
        return Learnt({"offset": np.full(len(std), self.params.by * float(np.sqrt(np.mean(std * std))))})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return x + learnt["offset"]

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.shifted(self.params.by * cloud.spread)

    @classmethod
    def in_training(cls, params: Any) -> str:
        return "a head in training absorbs a shift into its bias, so nothing would change"

    def affine(self) -> Affine:
        offset = self.learnt.arrays["offset"]
        return Affine(np.ones_like(offset), offset)
