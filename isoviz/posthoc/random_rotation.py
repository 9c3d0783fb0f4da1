"""A random rotation. Measures of the cloud's shape do not change under it; measures of single coordinates do."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Paper, Params, parameter

BIBTEX = """\
@article{mezzadri2007generate,
  title={How to Generate Random Matrices from the Classical Compact Groups},
  author={Mezzadri, Francesco},
  journal={Notices of the American Mathematical Society},
  volume={54},
  number={5},
  pages={592--604},
  year={2007}
}
"""


class RotationParams(Params):
    """Parameters of a random rotation."""

    seed: int = parameter(
        0,
        label="Seed",
        symbol="",
        help="Selects the rotation: the same seed and number of dimensions give the same rotation.",
        source="Mezzadri 2007",
        ge=0,
        le=2**31 - 1,
    )


class Rotation(CataloguedTransform):
    """y = xR about the origin, with R drawn uniformly from all orthogonal matrices (it may include a reflection). Learnt:
    `matrix` (d, d), which depends only on the width of the fit set.
    """

    slug = "rotation"
    title = "Random rotation"
    summary = "Rotates the cloud about the origin without changing its shape."
    equation = r"y = xR,\quad R^\top R = I"
    paper = Paper(
        short="Mezzadri 2007",
        title="How to Generate Random Matrices from the Classical Compact Groups",
        year=2007,
        bibtex=BIBTEX,
    )
    Params = RotationParams
    params: RotationParams
    traps = (
        "A classifier trained on the old coordinates cannot read the new ones; a retrained one loses nothing.",
        "Spread and correlation of single dimensions change, so a diagonal transform after it has a different effect.",
    )
    effects = Effects(
        isoscore="unchanged",
        ev="unchanged",
        mean_cosine="unchanged",
    )
    ARRAYS = {"matrix": "dd"}
    coordinates = "any"
    reads = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        return Learnt({"matrix": rotation_matrix(x.shape[1], self.params.seed).copy()})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return x @ learnt["matrix"]

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.rotated(rotation_matrix(cloud.width, self.params.seed))

    @classmethod
    def in_training(cls, params: Any) -> str:
        return "a head in training rotates with the cloud, so nothing would change"

    def affine(self) -> Affine:
        matrix = self.learnt.arrays["matrix"]
        return Affine(matrix, np.zeros(len(matrix)))


@functools.lru_cache(maxsize=4)
def rotation_matrix(d: int, seed: int) -> NDArray[np.float64]:
    """(d, d) orthogonal, read-only: the QR factor of a Gaussian matrix, with signs that make its distribution uniform."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    matrix: NDArray[np.float64] = q * np.where(r.diagonal() < 0, -1.0, 1.0)
    matrix.setflags(write=False)
    return matrix
