"""GOR: global orthogonal regularisation, which spreads vectors out over the sphere (Zhang et al. 2017; EmbeddingGemma, 2025)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isoviz.bibliography import entries
from isoviz.methods.protocol import CloudParams, CloudPenalty, Paper, parameter

if TYPE_CHECKING:
    from torch import Tensor


class GORParams(CloudParams):
    lam: float = parameter(
        0.01,
        label="Strength",
        symbol="λ",
        help="How strongly the cosines of different vectors are pulled to 0. 0 adds no term.",
        source="ours, mild beside a task loss; Zhang et al. 2017 and sentence-transformers: 1, beside losses of their own",
        sweep=(0.01, 0.1, 1.0),
        suggested=True,
        ge=0,
        le=1000,
    )
    form: Literal["zhang2017", "embeddinggemma"] = parameter(
        "zhang2017",
        label="Form",
        help=(
            "zhang2017: the squared mean cosine, plus the mean squared cosine as far as it exceeds 1/d, its value for uniform "
            "directions. embeddinggemma: the mean squared cosine alone, without that floor."
        ),
        source="zhang2017: also sentence-transformers; embeddinggemma: EmbeddingGemma, equation 4 (arXiv 2509.20354)",
    )


class GOR(CloudPenalty):
    """Adds λ times the first two moments of the cosines between distinct vectors to the loss."""

    slug = "gor"
    title = "Spread-out (GOR)"
    summary = "Pulls the cosines between the batch's vectors to 0, so that they spread out over the sphere."
    equation = (
        r"L = L_{\mathrm{task}} + \lambda \Bigl[M_1^2 + \max\bigl(0,\, M_2 - \tfrac{1}{d}\bigr)\Bigr],\quad"
        r" M_k = \frac{1}{n(n-1)} \sum_{i \ne j} \bigl(\hat x_i^\top \hat x_j\bigr)^k"
    )
    paper = Paper("Zhang et al. 2017", entries()["zhang2017learning"])
    Params = GORParams
    params: GORParams
    effects = {"penalty": "down"}
    acts_on = "mean_cosine"
    traps = (
        "It sees directions only. Lengths, and with them variances and IsoScore, may change in any way.",
        "All pairs of the batch count, as in sentence-transformers, also those of one label or of one text. Zhang et al. take "
        "one non-matching pair per row, so their term is noisier and does not push matching rows apart.",
        "EmbeddingGemma's equation has no floor at 1/d, and sums over queries and passages. sentence-transformers calls its loss "
        "with a mean weight of 0 equivalent, but keeps the floor.",
        "1/d is the mean squared cosine of uniform directions, not the smallest: orthogonal vectors reach 0. Below 1/d only "
        "the squared mean cosine pulls.",
    )

    def statistic(self, points: Tensor) -> Tensor:
        """M₁² + max(0, M₂ − 1/d), or M₂ alone, in closed form; O(n · d · min(n, d))."""
        first, second = cosine_moments(points)
        if self.params.form == "embeddinggemma":
            return second
        return first.square() + (second - 1 / points.shape[1]).clamp_min(0)


def cosine_moments(points: Tensor) -> tuple[Tensor, Tensor]:
    """The means of cos and cos² over all ordered pairs of distinct points (n, d): two scalars.

    From the sum of the directions and the smaller of the n × n and d × d products of their matrix. A point without a direction
    (shorter than 1e-12) has cosine 0 with every other. Zero for fewer than two points.
    """
    from isoviz.metrics.cloud import sum_dtype
    from isoviz.metrics.penalties import unit_rows

    n, d = points.shape
    if n < 2:
        return points.sum() * 0.0, points.sum() * 0.0
    wide, unit = sum_dtype(points.device), unit_rows(points)
    squares = unit.square().sum(dim=1, dtype=wide)
    total = unit.sum(dim=0, dtype=wide)
    product = unit @ unit.T if n <= d else unit.T @ unit
    pairs = n * (n - 1)
    first = (total.square().sum() - squares.sum()) / pairs
    second = (product.square().sum(dtype=wide) - squares.square().sum()) / pairs
    return first.to(points.dtype), second.to(points.dtype)
