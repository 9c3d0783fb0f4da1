"""Rotation, shift and change of unit. They keep the shape of a cloud, so measures of its shape do not change."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.metrics.dimensions import dimension_std
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper, Params, parameter

ISOSCORE_PAPER = Paper("Rudman et al. 2022", entries()["rudman2022isoscore"])


class ShiftParams(Params):
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
    training = "a head in training absorbs a shift into its bias, so nothing would change"
    ARRAYS = {"offset": "d"}
    coordinates = "any"
    fits_on = "population"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        std = np.asarray(dimension_std(x))
        return Learnt({"offset": np.full(len(std), self.params.by * float(np.sqrt(np.mean(std * std))))})

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.shifted(self.params.by * cloud.spread)


class ScaleParams(Params):
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
    training = "a head in training absorbs the unit into its weights; the effect is that of a different learning rate"
    ARRAYS = {"scale": "d"}
    coordinates = "any"
    fits_on = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        return Learnt({"scale": np.full(x.shape[1], self.params.factor)})

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.scaled(self.params.factor, mean=cloud.mean * self.params.factor)


class RotationParams(Params):
    seed: int = parameter(
        0,
        label="Seed",
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
    paper = Paper("Mezzadri 2007", entries()["mezzadri2007generate"])
    Params = RotationParams
    params: RotationParams
    traps = (
        "A classifier trained on the old coordinates cannot read the new ones; a retrained one loses nothing.",
        "Spread and correlation of single dimensions change, so a diagonal transform after it has a different effect.",
    )
    training = "a head in training rotates with the cloud, so nothing would change"
    ARRAYS = {"matrix": "dd"}
    coordinates = "any"
    fits_on = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        return Learnt({"matrix": rotation_matrix(x.shape[1], self.params.seed).copy()})

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        return cloud.rotated(rotation_matrix(cloud.width, self.params.seed))


@functools.lru_cache(maxsize=4)
def rotation_matrix(d: int, seed: int) -> NDArray[np.float64]:
    """(d, d) orthogonal, read-only: the QR factor of a Gaussian matrix, with signs that make its distribution uniform."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    matrix: NDArray[np.float64] = q * np.where(r.diagonal() < 0, -1.0, 1.0)
    matrix.setflags(write=False)
    return matrix
