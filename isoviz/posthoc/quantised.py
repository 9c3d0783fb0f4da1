"""Vectors stored in a few bits for each dimension: whole numbers between the ends of each dimension's range, or signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.metrics.moments import centre
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper, Params, parameter

PAPER = Paper("Kisako et al. 2026", entries()["kisako2026when"])
STAYS = "an encoder in training has no stored vectors to compress"


class QuantisationParams(Params):
    bits: int = parameter(
        8,
        label="Bits per dimension",
        symbol="b",
        help="8 gives int8. To combine it with fewer dimensions, put PCA whitening at strength 0 before it.",
        source="sentence-transformers, quantize_embeddings (8 bits)",
        ge=1,
        le=8,
        slider=(1, 8, 1),
    )


class Quantisation(CataloguedTransform):
    """y_i = a_i + z_i s_i: the nearest of 2ᵇ values, s_i apart, from the smallest number a_i of dimension i in the fit set to its
    largest. With 8 bits, these are the intervals of sentence-transformers' `quantize_embeddings` with the fit set for calibration.

    Learnt: `start` a (d,), `step` s (d,), 0 for a dimension that is constant in the fit set.
    """

    slug = "quantisation"
    title = "Quantisation"
    summary = (
        "Rounds every dimension to 2ᵇ values between its smallest and largest number in the fit set; with 8 bits, int8."
    )
    equation = (
        r"y_i = a_i + z_i s_i,\quad z_i = \min\bigl(\max(\mathrm{round}((x_i - a_i) / s_i), 0), 2^b - 1\bigr),\quad "
        r"s_i = (\max_n x_{ni} - a_i) / (2^b - 1),\quad a_i = \min_n x_{ni}"
    )
    paper = PAPER
    Params = QuantisationParams
    params: QuantisationParams
    traps = (
        "Numbers beyond the range of the fit set are cut to its ends.",
        "One extreme row stretches the range of a dimension, and the other rows share few of its values.",
    )
    training = STAYS
    ARRAYS = {"start": "d", "step": "d"}

    @classmethod
    def name(cls, params: Any) -> str:
        return f"Quantisation to {params.bits} bit{'s' if params.bits > 1 else ''}"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        start = x.min(axis=0)
        return Learnt({"start": start, "step": (x.max(axis=0) - start) / (2**self.params.bits - 1)})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        start, step, most = learnt["start"], learnt["step"], 2**self.params.bits - 1
        place = ((x - start) / (step + (step == 0))).clip(0, most)
        place = place + 0.5
        return start + (place - place % 1) * step  # the floor, in operators that numpy and torch share


class BinaryParams(Params):
    centre: bool = parameter(
        False,
        label="Centre first",
        help="Compare each number with the mean of its dimension in the fit set, instead of 0.",
        source="our addition: sentence-transformers' quantize_embeddings compares with 0",
        start=True,
    )


class Binary(CataloguedTransform):
    """y_i = 1 if x_i > t_i, else −1; t is 0, or the mean of the fit set. The order by cosine is the order by Hamming distance.

    Learnt: `threshold` t (d,). `silent`: the number of dimensions with the same sign in all rows of the fit set, which carry nothing.
    """

    slug = "binary"
    title = "Binary quantisation"
    summary = "Keeps one bit for each dimension: whether it exceeds 0, or the training mean."
    equation = r"y_i = \begin{cases} 1 & x_i > t_i \\ -1 & \text{else} \end{cases},\quad \cos(y, y') = 1 - 2\,\mathrm{Hamming}(y, y') / d"
    paper = PAPER
    Params = BinaryParams
    params: BinaryParams
    traps = (
        "Without centring, a dimension whose mean is far from 0 has the same sign in all rows and carries nothing; see `silent`.",
        "Hamming distances are whole numbers, so many rows are tied; IsoViz counts the mean over all orders of tied rows.",
        "A dimension that hardly varies counts as much as the widest one, because only signs are left.",
    )
    training = STAYS
    ARRAYS = {"threshold": "d"}
    COUNTS = ("silent",)

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        threshold = centre(x)[1] if self.params.centre else np.zeros(x.shape[1])
        positive = np.count_nonzero(x > threshold, axis=0)
        silent = int(np.isin(positive, [0, len(x)]).sum())
        note = f"{silent} of {x.shape[1]} dimensions have the same sign in all rows and carry nothing"
        return Learnt({"threshold": threshold}, {"silent": silent}, (note,) if silent else ())

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return (x > learnt["threshold"]) * 2.0 - 1.0 + 0.0 * x  # the last term gives a tensor its gradient, which is 0
