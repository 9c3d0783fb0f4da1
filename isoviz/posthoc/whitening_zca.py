"""ZCA whitening: the whitening that moves points least."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper
from isoviz.posthoc.whitening import IN_TRAINING, WhiteningParams, scaled_axes, whitening_factors

BIBTEX = """\
@article{bell1997independent,
  title={The ``independent components'' of natural scenes are edge filters},
  author={Bell, Anthony J. and Sejnowski, Terrence J.},
  journal={Vision Research},
  volume={37},
  number={23},
  pages={3327--3338},
  year={1997}
}
"""


class ZCA(CataloguedTransform):
    """Centres, then makes every direction vary equally, without rotating: y = (x − μ)Σ^(−s/2).

    Learnt: `mean` (d,), `matrix` (d, d). Directions dropped for lack of variance map to 0.
    """

    slug = "zca"
    title = "ZCA whitening"
    summary = "Centres and stretches so that all directions vary equally, keeping each dimension where it was."
    equation = r"y = (x - \mu)\,\Sigma^{-s/2}"
    paper = Paper(
        short="Bell & Sejnowski 1997",
        title="The 'independent components' of natural scenes are edge filters",
        year=1997,
        bibtex=BIBTEX,
    )
    Params = WhiteningParams
    params: WhiteningParams
    traps = (
        "With fewer points than dimensions the fit set comes out perfectly white in its own span; other points do not.",
        "Directions with almost no variance are dropped, not stretched; read `dropped`.",
        "At full strength the least varying directions, often noise, count as much as the most varying ones.",
    )
    ARRAYS = {"mean": "d", "matrix": "dd"}
    COUNTS = ("dropped",)
    coordinates = "principal"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        axes, factors = scaled_axes(x, eps, self.params)
        matrix = (axes.directions * factors) @ axes.directions.T
        dropped = x.shape[1] - int(np.count_nonzero(factors))
        return Learnt({"mean": axes.mean, "matrix": matrix}, {"dropped": dropped})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return (x - learnt["mean"]) @ learnt["matrix"]

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        factors = whitening_factors(cloud.principal_std, cloud.width, self.params)
        return cloud.scaled(factors, mean=np.zeros(cloud.width))

    @property
    def dropped(self) -> int:
        """How many of the d directions are set to 0 for lack of variance."""
        return self.learnt.counts["dropped"]

    @classmethod
    def in_training(cls, params: Any) -> str:
        return IN_TRAINING

    def affine(self) -> Affine:
        mean, matrix = self.learnt.arrays["mean"], self.learnt.arrays["matrix"]
        return Affine(matrix, -mean @ matrix)
