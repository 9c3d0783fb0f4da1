"""Every metric with its claims, for tooltips and for the table in docs/metrics.md.

tests/metrics/test_claims.py measures each claim, in both directions. Importing this module loads neither torch nor scipy;
`python -m isoviz.metrics.catalogue` prints the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from isoviz.metrics.claims import CHANGES, AtIsotropy, Bound, Change, Citation, EnoughPoints, Metric, Range


def _constant(value: float) -> Callable[[int, int], Bound]:
    return lambda n, d: value


def _rank(n: int, d: int) -> int:
    """The highest rank that a centred cloud can have."""
    return max(1, min(d, n - 1))


def _even_curve(n: int, d: int) -> Bound:
    """The flattest curve of explained variance that n points in d dimensions can have."""
    return np.minimum(np.arange(1, min(n, d) + 1) / _rank(n, d), 1.0)


_OF_THE_COVARIANCE: frozenset[Change] = frozenset({"shift", "scale", "rotation", "order", "duplicates"})

_ISOSCORE_PAPER = Citation("Rudman et al. 2022", "rudman2022isoscore", 2022, "arXiv:2108.07344")
_ISTAR_PAPER = Citation("Rudman & Eickhoff 2024", "rudman2024istar", 2024, "arXiv:2305.19358")
_ISOBN_PAPER = Citation("Zhou et al. 2020", "zhou2020isobn", 2020, "arXiv:2005.02178")

_ISOSCORE = Metric(
    slug="isoscore",
    title="IsoScore",
    symbol="ι",
    sees="How evenly the variance is spread over all d directions.",
    blind_to="Cannot see the mean, nor anything beyond second moments: tails, clusters and copies of points leave it as it is.",
    range=Range("0 … 1, at most (n − 2)/(d − 1)", _constant(0.0), lambda n, d: (_rank(n, d) - 1) / (d - 1)),
    at_isotropy=AtIsotropy("1", _constant(1.0), "sample"),
    unchanged_by=_OF_THE_COVARIANCE,
    enough=EnoughPoints(
        "5 d, at least 40: up to 25 % low, worst for an isotropic cloud, since 1/PR comes out larger by 1/(n − 1)",
        "falls",
        lambda d: max(5 * d, 40),
        0.25,
    ),
    paper=_ISOSCORE_PAPER,
    equation=r"\iota = \frac{(\operatorname{tr}\Sigma)^2 / \lVert\Sigma\rVert_F^2 - 1}{d - 1}",
    function="isoscore",
    minimum_d=2,
    differentiable=True,
)

_EXPLAINED_VARIANCE = Metric(
    slug="explained_variance",
    title="Explained variance",
    symbol="EV_k",
    sees="How much of the variance the first k principal directions hold together.",
    blind_to="Cannot see the mean, nor which directions the variance lies in.",
    range=Range("k/min(d, n − 1) … 1", _even_curve, _constant(1.0)),
    at_isotropy=AtIsotropy("k/d", lambda n, d: np.arange(1, min(n, d) + 1) / d, "sample"),
    unchanged_by=_OF_THE_COVARIANCE,
    enough=EnoughPoints(
        "10 d, at least 40: the curve up to 0.15 high, worst for an isotropic cloud",
        "falls",
        lambda d: max(10 * d, 40),
        0.15,
    ),
    paper=_ISOBN_PAPER,
    equation=r"\mathrm{EV}_k = \sum_{i \le k} \lambda_i \Big/ \sum_i \lambda_i",
    function="explained_variance",
    gives="curve",
)

_PARTITION_I1 = Metric(
    slug="partition_i1",
    title="Partition isotropy I1",
    symbol="I₁",
    sees="How even the partition function of the output embeddings is between its lowest and highest principal direction.",
    blind_to="Cannot tell shape from units: shrinking the rows alone drives it to isotropy, and the mean dominates it.",
    range=Range("0 … 1", _constant(0.0), _constant(1.0)),
    at_isotropy=AtIsotropy("1, but so has any W whose rows are short enough"),
    unchanged_by=frozenset({"rotation", "order", "duplicates"}),
    enough=EnoughPoints("exact: the rows are all there are", "exact"),
    paper=Citation("Arora et al. 2016", "arora2016latent", 2016, "arXiv:1502.03520"),
    equation=r"I_1 = \min_v Z(v) / \max_v Z(v), \quad Z(v) = \sum_i \exp(v^\top w_i)",
    function="partition",
    minimum=1,
    of="weights",
    part=0,
)

_ALL = (
    _ISOSCORE,
    replace(
        _ISOSCORE,
        slug="isoscore_star",
        title="IsoScore*",
        symbol="ι*",
        sees="IsoScore of the cloud's covariance mixed with a shrinkage matrix Σ_S, which steadies it for few points.",
        blind_to="Cannot see what IsoScore cannot, and ever less of the cloud as ζ grows: at ζ = 1 nothing.",
        range=Range("0 … 1", _constant(0.0), _constant(1.0)),
        at_isotropy=AtIsotropy("1, if Σ_S is isotropic too", _constant(1.0), "sample"),
        # The divisor n − 1 is not the same after repeating points, and it matters beside Σ_S.
        unchanged_by=_OF_THE_COVARIANCE - {"duplicates"},
        jointly="Σ_S",
        enough=EnoughPoints(
            "3.2 d at ζ = 0.2 with an exact Σ_S, at least 26: IsoScore's 5 d times (1 − ζ)²; up to 25 % low",
            "falls",
            lambda d: max(math.ceil(3.2 * d), 26),
            0.25,
        ),
        paper=_ISTAR_PAPER,
        equation=r"\iota(\Sigma_\zeta), \quad \Sigma_\zeta = (1 - \zeta)\Sigma_X + \zeta\Sigma_S",
        function="isoscore_star",
        inputs=("shrinkage_cov", "zeta"),
    ),
    replace(
        _ISOSCORE,
        slug="isoscore_unbiased",
        title="IsoScore, unbiased",
        symbol="ι̂",
        sees="IsoScore of the population behind the points, also when they are few.",
        blind_to="Cannot see dependence between points: tokens of one sentence pull it down as if they were independent.",
        range=Range("0 upwards, scatters around the true value and may exceed 1", _constant(0.0)),
        at_isotropy=AtIsotropy("1, on average", _constant(1.0), "population"),
        unchanged_by=_OF_THE_COVARIANCE - {"duplicates"},  # a repeated point is not a new one
        enough=EnoughPoints("64, whatever d: up to 10 % high, worst for d = 2", "falls", lambda d: 64, 0.1),
        paper=Citation("Himeno & Yamada 2014", "himeno2014estimations", 2014, "J. Multivariate Anal. 130"),
        equation=r"\hat\iota = \frac{V/U - 1}{d - 1}, \quad"
        r" \mathbb{E}\,U = \operatorname{tr}(\Sigma^2),\ \mathbb{E}\,V = (\operatorname{tr}\Sigma)^2",
        function="isoscore_unbiased",
        minimum=4,
    ),
    _EXPLAINED_VARIANCE,
    replace(
        _EXPLAINED_VARIANCE,
        slug="ev_1",
        title="Variance of the first direction",
        symbol="EV₁",
        sees="How much of the variance one single direction holds.",
        blind_to="Cannot see the mean, nor how the rest of the variance is spread.",
        range=Range("1/min(d, n − 1) … 1", lambda n, d: 1 / _rank(n, d), _constant(1.0)),
        at_isotropy=AtIsotropy("1/d", lambda n, d: 1 / d, "sample"),
        enough=EnoughPoints(
            "100 d: up to 20 % high, worst for an isotropic cloud; good at once where one direction dominates",
            "falls",
            lambda d: 100 * d,
            0.2,
        ),
        equation=r"\mathrm{EV}_1 = \lambda_1 \Big/ \sum_i \lambda_i",
        gives="number",
        options={"k": 1},
        part=0,
    ),
    Metric(
        slug="mean_cosine",
        title="Average cosine",
        symbol="cos",
        sees="Whether the vectors point the same way, so above all how far the cloud lies from the origin.",
        blind_to="Cannot see the shape nor the lengths: a cloud that is symmetric around the origin has 0 however stretched.",
        range=Range("−1/(n − 1) … 1", lambda n, d: -1 / (n - 1), _constant(1.0)),
        at_isotropy=AtIsotropy("0, on average", _constant(0.0), "population"),
        unchanged_by=frozenset({"scale", "rotation", "order"}),
        enough=EnoughPoints("2: unbiased at any n, only its scatter falls", "none", lambda d: 2),
        paper=Citation("Ethayarajh 2019", "ethayarajh2019contextual", 2019, "arXiv:1909.00512"),
        equation=r"\frac{\lVert \sum_i \hat u_i \rVert^2 - n}{n(n - 1)}, \quad \hat u_i = x_i / \lVert x_i \rVert",
        function="mean_cosine",
    ),
    _PARTITION_I1,
    replace(
        _PARTITION_I1,
        slug="partition_i2",
        title="Partition isotropy I2",
        symbol="I₂",
        sees="How much the partition function of the output embeddings varies over the principal directions.",
        range=Range(
            "0 … √(d − 1), at most (1 − I₁)/(2√I₁)", _constant(0.0), lambda n, d: math.sqrt(d - 1) * (1 + 1e-12)
        ),
        at_isotropy=AtIsotropy("0, but so has any W whose rows are short enough"),
        paper=Citation("Wang et al. 2020", "wang2020spectrum", 2020, "openreview:ByxY8CNtvr"),
        equation=r"I_2 = \sqrt{\frac{\sum_v (Z(v) - \bar Z)^2}{|V| \, \bar Z^2}}",
        part=1,
    ),
    Metric(
        slug="twonn",
        title="Intrinsic dimension (TwoNN)",
        symbol="ID",
        sees="How many directions a point's nearest neighbours spread into, also on a curved surface.",
        blind_to="Cannot see how much wider the cloud is in one direction than in another, nor tell high dimensions apart.",
        range=Range("above 0, scatters around the true value", _constant(0.0)),
        at_isotropy=AtIsotropy("d, while d is small", lambda n, d: d, "population"),
        unchanged_by=_OF_THE_COVARIANCE,
        enough=EnoughPoints(
            "160 up to d = 10, within 20 %; it saturates beyond: 800 points of a 100-d Gaussian give about 47",
            "saturates",
            lambda d: 160,
            0.2,
        ),
        paper=Citation("Facco et al. 2017", "facco2017twonn", 2017, "arXiv:1803.06992"),
        equation=r"-\log(1 - F(\mu)) = \mathrm{ID} \cdot \log\mu, \quad \mu = r_2 / r_1",
        function="twonn",
        minimum=3,
    ),
    replace(
        _ISOSCORE,
        slug="participation_ratio",
        title="Participation ratio",
        symbol="PR",
        sees="How many directions share the variance, were they to share it evenly.",
        blind_to="Cannot see what IsoScore cannot: it is 1 + (d − 1) · IsoScore. Ten directions of 10 and of 768 look alike.",
        range=Range("1 … min(d, n − 1)", _constant(1.0), _rank),
        at_isotropy=AtIsotropy("d", lambda n, d: d, "sample"),
        enough=EnoughPoints("5 d, at least 40: up to 20 % low", "falls", lambda d: max(5 * d, 40), 0.2),
        paper=Citation("Gao et al. 2017", "gao2017multineuronal", 2017, "doi:10.1101/214262"),
        equation=r"\mathrm{PR} = (\operatorname{tr}\Sigma)^2 / \lVert\Sigma\rVert_F^2",
        function="participation_ratio",
        minimum_d=1,
    ),
    replace(
        _ISOSCORE,
        slug="effective_rank",
        title="Effective rank",
        symbol="erank",
        sees="How many directions share the variance, small shares counting more than in the participation ratio.",
        blind_to="Cannot see the mean, nor anything beyond second moments, nor how many dimensions there are in all.",
        range=Range("1 … min(d, n − 1)", _constant(1.0), _rank),
        at_isotropy=AtIsotropy("d", lambda n, d: d, "sample"),
        enough=EnoughPoints("5 d, at least 40: up to 15 % low", "falls", lambda d: max(5 * d, 40), 0.15),
        paper=Citation("Roy & Vetterli 2007", "roy2007effective", 2007, "EUSIPCO 2007, pp. 606–610"),
        equation=r"\exp\Big(-\sum_i p_i \log p_i\Big), \quad p_i = \lambda_i / \sum_j \lambda_j",
        function="effective_rank",
        minimum_d=1,
        differentiable=False,
    ),
    Metric(
        slug="dimension_std",
        title="Spread of each dimension",
        symbol="σ_j",
        sees="How far each single dimension spreads, so that rogue dimensions stand out.",
        blind_to="Cannot see correlation: d copies of one dimension look like d independent ones.",
        range=Range("0 upwards", _constant(0.0)),
        at_isotropy=AtIsotropy("all equal, which is not sufficient"),
        unchanged_by=frozenset({"shift", "order", "duplicates"}),
        enough=EnoughPoints("20: 5 % low at that", "falls", lambda d: 20, 0.06),
        paper=_ISOBN_PAPER,
        equation=r"\sigma_j = \sqrt{\tfrac1n \sum_i (x_{ij} - \bar x_j)^2}",
        function="dimension_std",
        minimum=1,
        gives="per dimension",
    ),
    Metric(
        slug="mean_activation",
        title="Mean of each dimension",
        symbol="x̄_j",
        sees="Where the cloud lies, dimension by dimension.",
        blind_to="Cannot see any spread: a single point has the same means as the widest cloud around it.",
        range=Range("unbounded"),
        at_isotropy=AtIsotropy("any: isotropy does not fix it"),
        unchanged_by=frozenset({"order", "duplicates"}),
        enough=EnoughPoints("1: unbiased at any n", "none", lambda d: 1),
        paper=_ISTAR_PAPER,
        equation=r"\bar x_j = \tfrac1n \sum_i x_{ij}",
        function="mean_activation",
        minimum=1,
        gives="per dimension",
    ),
    Metric(
        slug="rogue_share",
        title="Share of the widest dimension",
        symbol="rogue",
        sees="How much of the variance one single dimension holds.",
        blind_to="Cannot see directions between the dimensions, nor how the others share the rest.",
        range=Range("1/d … 1", lambda n, d: 1 / d, _constant(1.0)),
        at_isotropy=AtIsotropy("1/d", lambda n, d: 1 / d, "sample"),
        unchanged_by=frozenset({"shift", "scale", "order", "duplicates"}),
        enough=EnoughPoints(
            "100 ln d, at least 40: up to 20 % high, worst for an isotropic cloud",
            "falls",
            lambda d: max(math.ceil(100 * math.log(d)), 40),
            0.2,
        ),
        paper=Citation("Timkey & van Schijndel 2021", "timkey2021rogue", 2021, "arXiv:2109.04404"),
        equation=r"\max_j \Sigma_{jj} / \operatorname{tr}\Sigma",
        function="rogue_share",
    ),
    Metric(
        slug="abs_correlation",
        title="Correlation of dimensions",
        symbol="|ρ_jk|",
        sees="Which dimensions say the same thing.",
        blind_to="Cannot see how wide a dimension is, nor the sign: a rogue dimension a thousand times wider leaves it as it is.",
        range=Range("0 … 1", _constant(0.0), _constant(1.0)),
        at_isotropy=AtIsotropy("0 off the diagonal", lambda n, d: np.eye(d), "sample"),
        unchanged_by=frozenset({"shift", "scale", "stretch", "order", "duplicates"}),
        enough=EnoughPoints(
            "100: what is 0 in truth comes out near 0.08, at 25 points near 0.16", "falls", lambda d: 100, 0.1
        ),
        paper=_ISOBN_PAPER,
        equation=r"|\rho_{jk}| = |\Sigma_{jk}| / \sqrt{\Sigma_{jj}\Sigma_{kk}}",
        function="abs_correlation",
        gives="per pair of dimensions",
    ),
)

METRICS: dict[str, Metric] = {metric.slug: metric for metric in _ALL}
"""By slug, in the order in which they are shown."""


def markdown_table() -> str:
    """The table of docs/metrics.md, one line per metric."""
    header = (
        "measure",
        "what it sees",
        "what it cannot see",
        "range",
        "isotropic",
        "unchanged by",
        "defined from",
        "enough points",
        "source",
    )
    lines = [header, ("---",) * len(header), *(_cells(metric) for metric in METRICS.values())]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _cells(metric: Metric) -> tuple[str, ...]:
    unchanged = ", ".join(change for change in CHANGES if change in metric.unchanged_by)
    return (
        f"`{metric.slug}`",
        metric.sees,
        metric.blind_to,
        metric.range.text,
        metric.at_isotropy.text,
        f"{unchanged} (together with {metric.jointly})" if metric.jointly else unchanged,
        f"n = {metric.minimum}" + (f", d = {metric.minimum_d}" if metric.minimum_d > 1 else ""),
        metric.enough.text,
        f"{metric.paper.text}, {metric.paper.identifier}",
    )


if __name__ == "__main__":
    print(markdown_table())
