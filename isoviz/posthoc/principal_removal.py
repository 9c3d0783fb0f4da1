"""All-but-the-top: centre, and remove the directions of largest variance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.directions import principal_axes
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Paper, Params, parameter

BIBTEX = """\
@inproceedings{mu2018allbutthetop,
  title={All-but-the-Top: Simple and Effective Postprocessing for Word Representations},
  author={Mu, Jiaqi and Viswanath, Pramod},
  booktitle={International Conference on Learning Representations},
  year={2018}
}
"""


class AllButTheTopParams(Params):
    """Parameters of all-but-the-top."""

    remove: int | None = parameter(
        None,
        label="Directions removed",
        symbol="D",
        help=(
            "Number of top directions (those with the most variance) to remove. Empty: a hundredth of the dimensions, at "
            "least 1."
        ),
        source="Mu & Viswanath 2018, algorithm 1 (D about d/100)",
        ge=0,
        slider=(0, 40, 1),
        start=1,
    )
    literal: bool = parameter(
        False,
        label="From the uncentred points",
        symbol="",
        help=(
            "Project x instead of x − μ onto the removed directions: the covariance is the same, but a constant vector "
            "remains."
        ),
        source="Mu & Viswanath 2018, algorithm 1 taken literally",
    )


class AllButTheTop(CataloguedTransform):
    """y = x̃ − Σ_{i≤D} (u_i·x̃)u_i with x̃ = x − μ.

    Learnt: `mean` (d,), `directions` (d, r), r = min(D, rank): beyond the rank a direction is arbitrary.
    """

    slug = "all_but_the_top"
    title = "All-but-the-top"
    summary = "Centres the cloud and removes its few directions of largest variance."
    equation = r"y = \tilde x - \sum_{i \le D} (u_i \cdot \tilde x)\, u_i,\quad \tilde x = x - \mu"
    paper = Paper("Mu & Viswanath 2018", BIBTEX)
    Params = AllButTheTopParams
    params: AllButTheTopParams
    traps = (
        "On a cloud without dominant directions IsoScore falls, because removed directions count as dimensions without "
        "variance.",
        "If the D-th and the next direction have equal variance, the choice between them is arbitrary.",
        "The literal form leaves a constant vector in every point; it changes cosines but not IsoScore.",
    )
    effects = Effects(
        isoscore="up if few directions dominate, **down** on an isotropic cloud (d − D of d directions remain)",
        ev="starts at λ_{D+1}/Σ_{j>D}λ_j",
        mean_cosine="centred; a constant vector remains if `literal`",
    )
    training = "it removes directions of a finished cloud; an encoder in training would develop new dominant directions"
    ARRAYS = {"mean": "d", "directions": "dr"}
    COUNTS = ("removed",)
    coordinates = "principal"
    reads = "sample"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        axes = principal_axes(x, eps)
        directions = axes.leading(self._count(x.shape[1]))
        return Learnt({"mean": axes.mean, "directions": directions}, {"removed": directions.shape[1]})

    def _count(self, d: int) -> int:
        """D in d dimensions."""
        count = max(1, round(d / 100)) if self.params.remove is None else self.params.remove
        if count > d:
            raise InputError(f"remove must be at most {d}, the dimensions of the points, got {count}")
        return count

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        directions = learnt["directions"]
        centred = x - learnt["mean"]
        source = x if self.params.literal else centred
        return centred - (source @ directions) @ directions.T

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        std, count = cloud.principal_std, self._count(cloud.width)
        rank = int(np.count_nonzero(std))
        removed = np.argsort(-std, kind="stable")[: min(count, rank)]
        factors = np.ones(len(std))
        factors[removed] = 0.0
        mean = np.zeros(cloud.width)
        if self.params.literal:
            directions = cloud.directions[:, removed]
            mean = -(cloud.mean @ directions) @ directions.T
        return replace(cloud.scaled(factors, mean=mean), only_rounding=cloud.only_rounding or count >= rank)

    @property
    def removed(self) -> int:
        """Number of directions removed: D, or the rank of the fit set if that is smaller."""
        return self.learnt.counts["removed"]

    def affine(self) -> Affine:
        mean, directions = self.learnt.arrays["mean"], self.learnt.arrays["directions"]
        matrix = np.eye(len(mean)) - directions @ directions.T
        return Affine(matrix, -mean if self.params.literal else -mean @ matrix)
