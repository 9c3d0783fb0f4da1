"""A chain: several transforms applied in order, used as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.posthoc.protocol import Affine, Groups, Transform


class Chain(Transform):
    """Each step is fitted on the output of the steps before it. A chain without steps is the identity. The steps are not
    copied: `fit` fits the given objects. Tensors are rounded to their own type once, at the end.
    """

    slug = "chain"

    def __init__(self, steps: Iterable[Transform]) -> None:
        self.steps: tuple[Transform, ...] = tuple(steps)
        if len({id(step) for step in self.steps}) < len(self.steps):
            raise InputError("each step of a chain must be a separate transform, got the same object twice")
        self._given_width: int | None = None
        self.needs = next((step.needs for step in self.steps if step.needs), "")
        # running sums pass through affine steps like points, but they cannot serve two divisors
        needed = {step.fits_on for step in self.steps} - {"mean"}
        nonlinear = any(getattr(step, "coordinates", None) is None for step in self.steps[:-1])
        self.fits_on = "points" if len(needed) > 1 or nonlinear else needed.pop() if needed else "mean"

    def __repr__(self) -> str:
        return f"chain([{', '.join(repr(step) for step in self.steps)}])"

    def affine(self) -> Affine | None:
        """The composition of the steps' maps; None if any step is not affine."""
        width = self._width()
        composed = Affine(np.eye(width), np.zeros(width))
        for step in self.steps:
            step_map = step.affine()
            if step_map is None:
                return None
            composed = composed.then(step_map)
        return composed

    def _fit(self, x: NDArray[np.float64], eps: float, groups: Groups | None = None) -> None:
        width = x.shape[1]
        for step in self.steps:
            step._fit(x, eps, groups)
            x = step._map(x, groups)
        self._given_width = width

    def _map(self, x: Any, groups: Groups | None = None) -> Any:
        if not self.steps:
            return x + 0.0  # never return the caller's array
        for step in self.steps:
            x = step._map(x, groups)
        return x

    def _width(self) -> int:
        if self.steps:
            return self.steps[0]._width()
        if self._given_width is None:
            raise InputError("chain is not fitted yet: call fit(points) first")
        return self._given_width


chain = Chain
