"""PCA whitening, with an option to keep only the first k columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.directions import peak_signs
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Paper, parameter
from isoviz.posthoc.whitening import IN_TRAINING, WhiteningParams, scaled_axes, whitening_factors

BIBTEX = """\
@article{su2021whitening,
  title={Whitening Sentence Representations for Better Semantics and Faster Retrieval},
  author={Su, Jianlin and Cao, Jiarun and Liu, Weijie and Ou, Yangyiwen},
  journal={arXiv preprint arXiv:2103.15316},
  year={2021}
}
"""


class PCAWhiteningParams(WhiteningParams):
    """Parameters of PCA whitening."""

    components: int | None = parameter(
        None,
        label="Components",
        symbol="k",
        help="Keep the k directions of largest variance. Empty keeps all.",
        source="Su et al. 2021 (256 for base encoders, 384 for large ones)",
        sweep=(256, 384),
        ge=1,
    )


class PCAWhitening(CataloguedTransform):
    """Centres, rotates to the principal directions and gives them equal variance: y = (x − μ)UΛ^(−s/2).

    Learnt: `mean` (d,), `matrix` (d, k). The width is k (default d) at any rank: a direction dropped for lack of variance is a
    column of zeros. Each column of U has its largest entry positive, which fixes the signs.
    """

    slug = "pca_whitening"
    title = "PCA whitening"
    summary = "Rotates to the principal directions and rescales them to equal variance; can keep only the first k."
    equation = r"y = (x - \mu)\,U_k \Lambda_k^{-s/2}"
    paper = Paper(
        short="Su et al. 2021",
        title="Whitening Sentence Representations for Better Semantics and Faster Retrieval",
        year=2021,
        bibtex=BIBTEX,
    )
    Params = PCAWhiteningParams
    params: PCAWhiteningParams
    traps = (
        "The coordinates are rotated: a classifier trained on the original coordinates cannot read the new ones. ZCA does not "
        "rotate them.",
        "With fewer points than dimensions the fit set becomes perfectly white in its own span; other points do not.",
        "Directions with almost no variance become columns of zeros; see `dropped`.",
    )
    effects = Effects(
        isoscore="as `zca`; 1 within its k columns",
        ev="as `zca`",
        mean_cosine="centred; exactly as `zca`, if no column is cut",
    )
    ARRAYS = {"mean": "d", "matrix": "dk"}
    COUNTS = ("dropped",)
    coordinates = "principal"
    reads = "sample"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        d = x.shape[1]
        count = self.image_width(d)
        axes, factors = scaled_axes(x, eps, self.params)
        matrix = np.zeros((d, count))  # n < d points span fewer directions than requested
        available = min(count, len(factors))
        matrix[:, :available] = axes.directions[:, :available] * factors[:available]
        return Learnt(
            {"mean": axes.mean, "matrix": matrix}, {"dropped": count - int(np.count_nonzero(factors[:count]))}
        )

    def image_width(self, d: int) -> int:
        count = d if self.params.components is None else self.params.components
        if count > d:
            raise InputError(f"components must be at most {d}, the dimensions of the points, got {count}")
        return count

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return (x - learnt["mean"]) @ learnt["matrix"]

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        std = cloud.principal_std
        count = self.image_width(cloud.width)
        leading = np.argsort(-std, kind="stable")[:count]
        factors = np.zeros(len(std))
        factors[leading] = whitening_factors(std, cloud.width, self.params)[leading]
        basis = np.zeros((count, len(std)))
        basis[np.arange(count), leading] = peak_signs(cloud.directions[:, leading])
        return replace(cloud.scaled(factors, mean=np.zeros(count)), basis=basis)

    @property
    def dropped(self) -> int:
        """Number of the k columns that are zero for lack of variance."""
        return self.learnt.counts["dropped"]

    @classmethod
    def in_training(cls, params: Any) -> str:
        return IN_TRAINING

    def affine(self) -> Affine:
        mean, matrix = self.learnt.arrays["mean"], self.learnt.arrays["matrix"]
        return Affine(matrix, -mean @ matrix)
