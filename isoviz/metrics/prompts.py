"""Prompt entropy: how evenly the tokens of a text spread over directions (Skean et al. 2025)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, answer, undefined
from isoviz.metrics.discriminant import codes_of
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value


def prompt_entropy(points: Points, texts: Any) -> Value:
    """Mean over texts of the matrix entropy of a text's tokens, divided by its highest possible value, log min(T, d).

    The entropy −Σ p log p of p = λ/Σλ, where λ are the eigenvalues of the Gram matrix ZZᵀ of a text's T tokens Z (T, d): Skean et al.
    (2025, equation 1, α → 1), and Queipo-de-Llano et al. (2025, arXiv:2510.06477), whose p are squared singular values over
    their sum. Both formulas neither centre nor scale the tokens, nor is it done here: one token of massive length, or a direction that
    all tokens share, lowers it. Skean et al.'s code does more: it centres each text's tokens, divides each by its length, and sets
    negative entries of the Gram matrix to 0; it offers several normalisations, of which `maxEntropy` is this one.

    Texts of fewer than 2 tokens, or of zero vectors only, are left out. Undefined (nan) without others, and for d = 1.

    Args:
        points: (n, d), all tokens; a tensor result carries no gradient.
        texts: (n,) the text of each token, numbers or strings.
    """
    return answer("prompt_entropy", points, _estimate(Sample(points, inputs={"texts": texts})))


def entropy(tokens: NDArray[np.float64]) -> float:
    """Of one text's tokens (T, d), between 0 and 1; nan if it is undefined."""
    most = min(tokens.shape)
    biggest = float(np.abs(tokens).max(initial=0.0))
    if most < 2 or not biggest > 0:
        return math.nan
    z = tokens / biggest
    values = np.linalg.eigvalsh(z @ z.T if len(z) <= z.shape[1] else z.T @ z)
    shares = values[values > 0] / values[values > 0].sum()
    return float(-(shares @ np.log(shares))) / math.log(most)


def _estimate(sample: Sample) -> Estimate:
    assert sample.points is not None
    codes = codes_of(sample.inputs["texts"], sample.n, "texts")
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))[:-1]
    values = np.array([entropy(tokens) for tokens in np.split(sample.points[order], ends)])
    defined = values[~np.isnan(values)]
    if not len(defined):
        return undefined("no text has 2 tokens, or they have one dimension or are zero")
    left_out = len(values) - len(defined)
    return Estimate(float(defined.mean()), note=f"leaves out {left_out} texts" if left_out else "")


METRICS = Metric(
    slug="prompt_entropy",
    place=96,
    title="Prompt entropy",
    symbol="S̄",
    sees="How evenly the tokens of one text spread over directions, on average over the texts.",
    blind_to="Cannot see how texts differ from each other, and cannot distinguish one very long token from a shared direction.",
    help="Low in middle layers of many decoders: a compression valley, which one token of massive length can cause.",
    range=Range("0 … 1", constant(0.0), constant(1.0)),
    at_isotropy=AtIsotropy(
        "no single value: for Gaussian tokens 0.997 with 10 tokens and 0.986 with 100 at d = 768; 0.964 with 10 and 0.878 with 64 at d = 64"
    ),
    unchanged_by=frozenset({"scale", "rotation", "order"}),
    jointly="the texts",
    enough=EnoughPoints(
        "2 tokens of each text; it depends on their number, so compare layers of the same texts", "unknown"
    ),
    paper=Citation("Skean et al. 2025", "skean2025layer", 2025, "arXiv:2502.02013"),
    equation=r"\operatorname*{mean}_{\text{texts}} \frac{-\sum_i p_i \log p_i}{\log \min(T, d)}, \quad"
    r" p = \lambda / \textstyle\sum_j \lambda_j, \quad \lambda = \operatorname{eig}(Z Z^\top)",
    function=prompt_entropy,
    estimate=_estimate,
    inputs=("texts",),
    kinds=frozenset({"tokens"}),
    minimum=2,
    minimum_d=2,
    cost="eigenvalues",
    from_sums=False,
)
