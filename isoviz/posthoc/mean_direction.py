"""Removal of the mean direction, preserving the length of every point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.metrics.moments import centre
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper


class MeanRemoval(CataloguedTransform):
    """y = ‖x‖ r/‖r‖ with r = x − (x·μ̂)μ̂, where μ̂ is the unit vector along the mean of the fit set.

    Learnt: `direction` (d,), μ̂, or zeros if the mean is within the rounding of the coordinates; then y = x. `floor` (1,): a
    point whose r is at most this fraction of its length lies on the line of the mean and maps to 0, because its remainder has
    no direction. `removed`: the number of directions removed, 1, or 0 if the mean is zero.
    """

    slug = "mean_removal"
    title = "Mean removal"
    summary = "Removes from every point its component along the training mean, then restores the point's length."
    equation = (
        r"y = \lVert x \rVert \, r / \lVert r \rVert,\quad r = x - (x \cdot \hat\mu)\,\hat\mu,\quad "
        r"\hat\mu = \mu / \lVert \mu \rVert"
    )
    paper = Paper("Ren et al. 2025", entries()["ren2025correcting"])
    traps = (
        "Points on the line of the mean map to 0; points near it are stretched a lot, including their noise.",
        "A cloud with mean 0 does not change, because there is no direction to remove; see `removed`.",
        "Only the direction of the mean is removed: the image is not centred, and it spans one dimension less.",
    )
    ARRAYS = {"direction": "d", "floor": "k"}
    COUNTS = ("removed",)
    fits_on = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        _, mean = centre(x)
        floor = max(eps, x.shape[1] * float(np.finfo(np.float64).eps))
        removed = float(np.abs(mean).max()) > floor * float(np.abs(x).max())
        unit = mean / (np.abs(mean).max() or 1.0)  # so that squares neither overflow nor underflow
        direction = unit / np.linalg.norm(unit) if removed else np.zeros_like(mean)
        notes = () if removed else ("nothing is removed, because the mean is 0",)
        return Learnt({"direction": direction, "floor": np.array([floor])}, {"removed": int(removed)}, notes)

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        direction = learnt["direction"]
        remainder = x - (x @ direction)[:, None] * direction
        before, after = (x * x).sum(1), (remainder * remainder).sum(1)
        on_line = after <= learnt["floor"] ** 2 * before
        stretch = ((before + on_line) / (after + on_line)) ** 0.5  # avoids 0/0, which has no gradient
        return remainder * (stretch * ~on_line)[:, None]
