"""Removal of the mean's direction, with the length of every point kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Paper

BIBTEX = """\
@article{ren2025correcting,
  title={Correcting Mean Bias in Text Embeddings: A Refined Renormalization with Training-Free Improvements on MMTEB},
  author={Ren, Xingyu and Sun, Youran and Liang, Haoyu},
  journal={arXiv preprint arXiv:2511.11041},
  year={2025}
}
"""


class MeanRemoval(CataloguedTransform):
    """y = ‖x‖ r/‖r‖ with r = x − (x·μ̂)μ̂ and μ̂ the unit vector along the mean of the fit set.

    Learnt: `direction` (d,), μ̂, or zeros where the mean is no more than the rounding of the coordinates: then nothing is
    removed and y = x. `floor` (1,): a point whose r is at most that fraction of its length lies on the line of the mean and
    maps to 0, because what is left of it has no direction to be stretched along.
    """

    slug = "mean_removal"
    title = "Mean removal"
    summary = "Takes the part along the training mean out of every point, then restores the point's length."
    equation = (
        r"y = \lVert x \rVert \, r / \lVert r \rVert,\quad r = x - (x \cdot \hat\mu)\,\hat\mu,\quad "
        r"\hat\mu = \mu / \lVert \mu \rVert"
    )
    paper = Paper(
        short="Ren et al. 2025",
        title="Correcting Mean Bias in Text Embeddings: A Refined Renormalization with Training-Free Improvements on MMTEB",
        year=2025,
        bibtex=BIBTEX,
    )
    traps = (
        "Points on the line of the mean map to 0; points near it are stretched a lot, noise included.",
        "A cloud whose mean is 0 stays as it is: there is no direction to remove; see `removed`.",
        "The mean is taken out as a direction only, so the image is not centred; and it has one dimension fewer.",
    )
    effects = Effects(
        isoscore="up if the direction of the mean also varies most; at most (d − 2)/(d − 1)",
        ev="reaches 1 at k = d − 1",
        mean_cosine="near 0 where the mean made it large; **not centred**",
    )
    ARRAYS = {"direction": "d", "floor": "k"}
    COUNTS = ("removed",)
    reads = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        _, mean = centre(x)
        floor = max(eps, x.shape[1] * float(np.finfo(np.float64).eps))
        removed = float(np.abs(mean).max()) > floor * float(np.abs(x).max())
        unit = mean / (np.abs(mean).max() or 1.0)  # so that squares neither overflow nor vanish
        direction = unit / np.linalg.norm(unit) if removed else np.zeros_like(mean)
        return Learnt({"direction": direction, "floor": np.array([floor])}, {"removed": int(removed)})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        direction = learnt["direction"]
        remainder = x - (x @ direction)[:, None] * direction
        before, after = (x * x).sum(1), (remainder * remainder).sum(1)
        on_line = after <= learnt["floor"] ** 2 * before
        stretch = ((before + on_line) / (after + on_line)) ** 0.5  # 0/0 has no gradient
        return remainder * (stretch * ~on_line)[:, None]

    @property
    def removed(self) -> int:
        """How many directions are removed: 1, or 0 where the mean is zero."""
        return self.learnt.counts["removed"]

    def affine(self) -> None:
        """None once fitted: the map is not affine, because each point is scaled by a different factor."""
        self._width()  # the same error as everywhere if it is not fitted
