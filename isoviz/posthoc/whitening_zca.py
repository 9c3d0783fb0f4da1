"""ZCA whitening, the whitening that moves points the least; with a ridge, soft-ZCA."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Paper, parameter
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


SOFT_BIBTEX = """\
@article{diera2024isotropy,
  title={Isotropy Matters: Soft-ZCA Whitening of Embeddings for Semantic Code Search},
  author={Diera, Andor and Galke, Lukas and Scherp, Ansgar},
  journal={arXiv preprint arXiv:2411.17538},
  year={2024}
}
"""
SOFT = "Soft-ZCA whitening"


class ZCAParams(WhiteningParams):
    """Parameters of ZCA whitening."""

    eps: float = parameter(
        0.0,
        label="Ridge",
        symbol="ε",
        help=(
            "Added to every eigenvalue. Above 0 this is soft-ZCA, which whitens strong directions and stretches weak ones "
            "less. At 0, directions with almost no variance are dropped instead."
        ),
        source="Soft-ZCA: Diera et al. 2024, arXiv 2411.17538",
        sweep=(0.01, 0.1),
        suggested=True,
        ge=0,
        le=1e6,
    )


class ZCA(CataloguedTransform):
    """Centres, then gives every direction equal variance without rotating: y = (x − μ)(Σ + εI)^(−s/2).

    With ε > 0 and s = 1 it is soft-ZCA (Diera et al. 2024).

    Learnt: `mean` (d,), `matrix` (d, d). Directions dropped for lack of variance map to 0.
    """

    slug = "zca"
    title = "ZCA whitening"
    summary = (
        "Centres and rescales so that all directions have equal variance, without rotating the dimensions. With a ridge "
        "(soft-ZCA), weak directions are stretched less."
    )
    equation = r"y = (x - \mu)\,(\Sigma + \epsilon I)^{-s/2}"
    paper = Paper(
        short="Bell & Sejnowski 1997",
        title="The 'independent components' of natural scenes are edge filters",
        year=1997,
        bibtex=BIBTEX,
    )
    variants = {
        SOFT: Paper(
            short="Diera et al. 2024",
            title="Isotropy Matters: Soft-ZCA Whitening of Embeddings for Semantic Code Search",
            year=2024,
            bibtex=SOFT_BIBTEX,
        )
    }
    Params = ZCAParams
    params: ZCAParams
    traps = (
        "With fewer points than dimensions the fit set becomes perfectly white in its own span; other points do not.",
        "Without a ridge, directions with almost no variance are dropped, not stretched; see `dropped`.",
        "ε has the unit of a variance: the same ε can have no effect on one cloud, a mild effect on another, and swamp the "
        "variance of a third.",
        "At full strength the directions with the least variance, often noise, get the same weight as those with the most.",
    )
    effects = Effects(
        isoscore="rises with s; at s = 1 it is 1, or (r − 1)/(d − 1) at rank r",
        ev="k/d at s = 1, k/r at rank r",
        mean_cosine="centred",
    )
    ARRAYS = {"mean": "d", "matrix": "dd"}
    COUNTS = ("dropped",)
    coordinates = "principal"
    reads = "sample"

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
        """Number of the d directions set to 0 for lack of variance."""
        return self.learnt.counts["dropped"]

    @classmethod
    def name(cls, params: Any) -> str:
        if params.strength == 0:
            return f"Centring ({cls.title} at strength 0)"
        return SOFT if params.eps > 0 else cls.title

    @classmethod
    def in_training(cls, params: Any) -> str:
        return IN_TRAINING

    def affine(self) -> Affine:
        mean, matrix = self.learnt.arrays["mean"], self.learnt.arrays["matrix"]
        return Affine(matrix, -mean @ matrix)
