"""What stands behind "How to read this", beside every figure: two sentences, the formula, the paper."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.wording import plain
from isoviz.metrics.protocol import Metric


@dataclass(frozen=True)
class Explanation:
    """One figure or number, explained.

    Attributes:
        title: heading of the figure.
        reading: two plain sentences on how to read it.
        formula: LaTeX.
        formula_text: the same in Unicode, for places without LaTeX.
        paper: where it comes from.
    """

    title: str
    reading: str
    formula: str
    formula_text: str
    paper: str

    def plain(self) -> dict[str, str]:
        """For components: text only."""
        return {"title": self.title, "reading": self.reading, "formula": self.formula_text, "paper": self.paper}


_ENTRIES: dict[str, Explanation] = {
    "loss": Explanation(
        title="Loss",
        reading=(
            "What the optimiser minimises at each step: the task's loss, the terms that the isotropy method adds, and "
            "their total. If the validation loss rises while the total falls, the model is overfitting."
        ),
        formula=r"L = L_\text{task} + \sum_i L_i",
        formula_text="L = L_task + Σ L_penalty   (each penalty as it enters the sum)",
        paper="Penalties: Rudman & Eickhoff 2024 (I-STAR); Gao et al. 2019 (CosReg).",
    ),
    "metric": Explanation(
        title="Task performance",
        reading=(
            "The task's metric on the validation split, before training (epoch 0) and after each epoch. Grey lines "
            "are simple baselines: a useful model lies above them."
        ),
        formula=r"\text{accuracy} = \frac{\#\{\hat y_i = y_i\}}{n}",
        formula_text="accuracy = correct predictions / n;  other tasks use Matthews or Pearson correlation, or F1",
        paper="Wang et al. 2019 (GLUE) for the choice of metric per task.",
    ),
    "isotropy": Explanation(
        title="Isotropy",
        reading=(
            "1 means that the vectors spread evenly in all directions, 0 that they lie on one line; more isotropic is "
            "not better by itself. The unbiased score corrects for few points. IsoScore* describes the tokens of all "
            "layers: use it to compare methods."
        ),
        formula=(
            r"\text{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}, \quad "
            r"\mathrm{PR} = \frac{(\operatorname{tr} \Sigma)^2}{\operatorname{tr} \Sigma^2}"
        ),
        formula_text=(
            "IsoScore = (PR − 1)/(d − 1),  PR = (tr Σ)² / tr(Σ²)\n"
            "IsoScore*: the same of (1 − ζ) Σ + ζ Σ_S, ζ = 0.2, Σ_S from training tokens"
        ),
        paper=(
            "Rudman et al. 2022 (IsoScore); Rudman & Eickhoff 2024 (IsoScore*); Himeno & Yamada 2014 (unbiased traces)."
        ),
    ),
    "spectrum": Explanation(
        title="Explained variance EV_k",
        reading=(
            "The share of the variance in the k strongest directions. A curve that jumps up at once means that a few "
            "directions dominate; for a perfectly isotropic cloud it rises evenly, reaching 1 at k = d."
        ),
        formula=r"\mathrm{EV}_k = \frac{\sum_{i \le k} \sigma_i^2}{\sum_i \sigma_i^2}",
        formula_text="EV_k = (σ₁² + … + σ_k²) / (σ₁² + … + σ_d²),  singular values of the centred cloud",
        paper="Zhou et al. 2021 (IsoBN), equation 9.",
    ),
    "matrix": Explanation(
        title="Correlation of dimensions",
        reading=(
            "Each cell shows how strongly two dimensions vary together; correlated dimensions stand side by side. "
            "Strong blocks mean redundant dimensions; an isotropic cloud is empty off the diagonal."
        ),
        formula=r"|\rho_{ij}| = \frac{|\operatorname{cov}(x_i, x_j)|}{\sigma_i \sigma_j}",
        formula_text="|ρ_ij| = |cov(x_i, x_j)| / (σ_i σ_j);  order: average linkage on 1 − |ρ|, optimal leaf order",
        paper="Zhou et al. 2021 (IsoBN), figure 2.",
    ),
    "output_matrix": Explanation(
        title="Output matrix",
        reading=(
            "The matrix that turns a vector into scores. Z(v) sums the scores of all its rows for a direction v; I₁ "
            "and I₂ say how even Z is over its principal directions (1 and 0: perfectly even). Both depend on scale: "
            "short rows alone make them look isotropic, so read them beside ‖w‖, or at unit scale. The values "
            "published with isotropy calibration use another convention: the rows of the matrix of eigenvectors, and "
            "no division by |V|. As defined, I₂ is at most (1 − I₁)/(2√I₁)."
        ),
        formula=(
            r"Z(v) = \sum_i e^{v^\top w_i}, \quad I_1 = \frac{\min_v Z}{\max_v Z}, \quad "
            r"I_2 = \sqrt{\frac{\sum_v (Z(v) - \bar Z)^2}{|V| \, \bar Z^2}}"
        ),
        formula_text="Z(v) = Σ_i exp(vᵀw_i);  I₁ = min Z / max Z;  I₂ = √(Σ_v (Z(v) − Z̄)² / (|V| Z̄²)),  v: eigenvectors of WᵀW",
        paper="Arora et al. 2016; Wang et al. 2020; Ding et al. 2022 (isotropy calibration).",
    ),
    "tradeoff": Explanation(
        title="Isotropy against performance",
        reading=(
            "Each point is one run: its isotropy and its task performance. A slope means that the two vary together "
            "among these runs, not that one causes the other."
        ),
        formula=r"(x_r, y_r), \quad r = 1, \dots, R",
        formula_text="one point (x_r, y_r) for each run r",
        paper="Rudman & Eickhoff 2024, figure 3.",
    ),
    "parameter": Explanation(
        title="Against the method's parameter",
        reading=(
            "Each mark is one run at its parameter value. A line joins the means of runs that differ in nothing else; "
            "runs without the parameter give a dotted level. If the marks at one value scatter as widely as the line "
            "moves, the parameter has no visible effect."
        ),
        formula=r"\bar y(\lambda) = \frac{1}{n_\lambda} \sum_{\text{seeds}} y",
        formula_text="line: mean over the seeds of one value of λ",
        paper="Rudman & Eickhoff 2024, figures 5 and 7.",
    ),
    "seeds": Explanation(
        title="Every seed",
        reading=(
            "Each mark is one run, the vertical tick their mean; dotted lines are simple baselines. If the marks of "
            "two methods overlap, these runs cannot tell the methods apart, whatever their means."
        ),
        formula=r"s = \sqrt{\frac{1}{n - 1} \sum_{i} (y_i - \bar y)^2}",
        formula_text="s: sample standard deviation over n seeds",
        paper="Reimers & Gurevych 2017 on reporting score distributions.",
    ),
    "results": Explanation(
        title="Mean ± s over n seeds",
        reading=(
            "Runs that differ only in the seed share a row: mean, sample standard deviation s, number of seeds n, and "
            "every single value. Collapsed runs are included in the mean and listed in the remarks; failed and "
            "diverged runs are counted there."
        ),
        formula=r"\bar y = \frac{1}{n} \sum_i y_i, \quad s = \sqrt{\frac{1}{n - 1} \sum_i (y_i - \bar y)^2}",
        formula_text="mean, and sample standard deviation with divisor n − 1",
        paper="IsoScore: Rudman et al. 2022. Unbiased traces: Himeno & Yamada 2014.",
    ),
    "sigma_histogram": Explanation(
        title="Spread of the dimensions",
        reading=(
            "How many dimensions have which standard deviation, on a log axis; a separate bar counts those that never "
            "vary. Dimensions far to the right of the others hold most of the variance."
        ),
        formula=r"\sigma_j = \sqrt{\tfrac1n \sum_i (x_{ij} - \bar x_j)^2}",
        formula_text="σ_j = √(Σ_i (x_ij − x̄_j)² / n)",
        paper="Zhou et al. 2021 (IsoBN), figure 1.",
    ),
    "mean_activation": Explanation(
        title="Mean activation",
        reading=(
            "The mean of the cloud in each dimension. A cross marks a dimension whose mean is more than three "
            "standard deviations from the average of all means: a few of those can determine the average cosine. "
            "Where one is at least three times as far from 0 as all others, the axis is cut, and a triangle at its "
            "end gives the dimension and its mean."
        ),
        formula=r"\bar x_j = \tfrac1n \sum_i x_{ij}, \quad |\bar x_j - m| > 3 s",
        formula_text="x̄_j = Σ_i x_ij / n;  outlier: |x̄_j − m| > 3 s, with m and s over the dimensions",
        paper="Rudman & Eickhoff 2024, figure 4; the rule of three: Kovaleva et al. 2021.",
    ),
    "cosine_histogram": Explanation(
        title="Cosines of pairs",
        reading=(
            "How similar two points are in direction, over pairs of points; 0 means unrelated directions. A peak near "
            "1 means that the cloud lies far from the origin, not that its shape is uneven."
        ),
        formula=r"\cos(x_i, x_j) = \frac{x_i \cdot x_j}{\lVert x_i \rVert \, \lVert x_j \rVert}",
        formula_text="cos(x_i, x_j) = x_i · x_j / (‖x_i‖ ‖x_j‖)",
        paper="Ethayarajh 2019.",
    ),
    "mean_norm": Explanation(
        title="Length of the mean vector",
        reading=(
            "How far the centre of the cloud lies from the origin, in the units of the activations. It says nothing "
            "about the cloud's shape, but largely determines the average cosine."
        ),
        formula=r"\lVert \bar x \rVert = \sqrt{\textstyle\sum_j \bar x_j^2}",
        formula_text="‖x̄‖ = √(Σ_j x̄_j²)",
        paper="Mu & Viswanath 2018 (All-but-the-Top), who found it large for word vectors.",
    ),
    "isoscore_star": Explanation(
        title="IsoScore*",
        reading=(
            "The tokens of each layer, mixed at ζ = 0.2 with Σ_S: the covariance of that layer's tokens in rows of "
            "the training split, at most as many as the view reads, sampled with its seed and encoded in evaluation "
            "mode (so for a view of the whole training split, IsoScore* equals IsoScore). All layers together, with "
            "Σ_S of all their training tokens, give the value that compares runs; a run samples its own rows, and "
            "uses the decoder of an encoder-decoder."
        ),
        formula=r"\iota^* = \text{IsoScore}(\Sigma_\zeta), \quad \Sigma_\zeta = (1 - \zeta)\,\Sigma_X + \zeta\,\Sigma_S",
        formula_text="IsoScore* = IsoScore of (1 − ζ) Σ_X + ζ Σ_S, ζ = 0.2",
        paper="Rudman & Eickhoff 2024 (I-STAR), algorithm 1.",
    ),
    "pca": Explanation(
        title="PCA",
        reading=(
            "The cloud projected onto its directions of largest variance. The axes say how much variance they hold; "
            "the rest is not visible. Distances in the map are never larger than in the full space."
        ),
        formula=r"z_i = V^\top (x_i - \bar x), \quad \Sigma V = V \Lambda",
        formula_text="z_i = Vᵀ(x_i − x̄),  V: eigenvectors of the covariance with the largest eigenvalues",
        paper="Pearson 1901; Hotelling 1933.",
    ),
    "umap": Explanation(
        title="UMAP",
        reading=(
            "A layout that keeps each point's nearest neighbours close. Which points lie together is meaningful; the "
            "distances between groups, their sizes and the axes are not, and another seed gives another picture."
        ),
        formula=r"\min_z \sum_{ij} p_{ij} \log \frac{p_{ij}}{q_{ij}} + (1 - p_{ij}) \log \frac{1 - p_{ij}}{1 - q_{ij}}",
        formula_text="cross-entropy between the neighbour graph of the cloud (p) and that of the map (q)",
        paper="McInnes, Healy & Melville 2018.",
    ),
    "whatif_heads": Explanation(
        title="Two heads",
        reading=(
            "The frozen head is the run's own output layer, trained on the original vectors; the refitted head is a "
            "logistic regression (ridge regression for numbers) on the transformed training rows. If only the frozen "
            "head gets worse, the head no longer fits the vectors. If the refitted head changes, the transform "
            "changed what a linear head can read. Its penalty stays the same, so it also changes when narrow "
            "directions become wide or wide ones narrow, even if no information is lost. If the interval includes 0, "
            "the two cannot be told apart. It describes one setting; the best of many tried settings is optimistic."
        ),
        formula=r"\Delta = m(y, \hat y_{\text{after}}) - m(y, \hat y_{\text{before}})",
        formula_text="Δ = metric after − metric before, on the same rows; 95 % percentile interval of the paired bootstrap",
        paper="Efron & Tibshirani 1993, chapter 13.",
    ),
    "whatif_map": Explanation(
        title="Map",
        reading=(
            "Each mark is a validation row, placed along the two directions of largest variance, with the same unit "
            "on both axes. The axis titles give their share of the variance: small for an isotropic cloud."
        ),
        formula=r"z_i = U_2^\top (x_i - \bar x)",
        formula_text="z_i = U₂ᵀ(x_i − x̄), U₂ the two strongest principal directions of the validation rows",
        paper="Pearson 1901.",
    ),
    "confusion": Explanation(
        title="Confusion matrix",
        reading=(
            "Rows are true classes, columns are predicted classes; each cell gives the number of rows and their share "
            "of the true class. Correct predictions lie on the diagonal; a full column off the diagonal is a class "
            "that others are mistaken for."
        ),
        formula=r"C_{ij} = \#\{r : y_r = i,\ \hat y_r = j\}, \qquad \text{share}_{ij} = C_{ij} / \textstyle\sum_k C_{ik}",
        formula_text="C_ij = rows of class i predicted as j,  share = C_ij / Σ_k C_ik",
        paper="Stehman 1997, Selecting and interpreting measures of thematic classification accuracy.",
    ),
    "predicted": Explanation(
        title="Predicted against true",
        reading=(
            "One mark per validation row; predictions on the dotted line are exact. A flat cloud means that the model "
            "predicts values near the middle; a cloud along another line means good ranking but wrong scale."
        ),
        formula=r"r = \frac{\sum_i (y_i - \bar y)(\hat y_i - \bar{\hat y})}"
        r"{\sqrt{\sum_i (y_i - \bar y)^2 \sum_i (\hat y_i - \bar{\hat y})^2}}",
        formula_text="r = Σ(y − ȳ)(ŷ − mean ŷ) / √(Σ(y − ȳ)² Σ(ŷ − mean ŷ)²)",
        paper="Wang et al. 2019 (GLUE) for the correlation as metric.",
    ),
    "clouds": Explanation(
        title="Three clouds",
        reading=(
            "Each picture is a cloud of 300 points in two dimensions; the cross is the origin. Stretching changes "
            "IsoScore and leaves the average cosine alone; moving the cloud away from the origin does the opposite."
        ),
        formula=(
            r"\text{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}, \quad "
            r"\mathrm{PR} = \frac{(\operatorname{tr} \Sigma)^2}{\operatorname{tr} \Sigma^2}"
        ),
        formula_text="IsoScore = (PR − 1)/(d − 1),  PR = (tr Σ)² / tr(Σ²)",
        paper="Rudman et al. 2022, IsoScore: Measuring the Uniformity of Embedding Space Utilization.",
    ),
}


def get(name: str) -> Explanation:
    """The explanation of a figure or number; KeyError for a name that has none."""
    return _ENTRIES[name]


def show(name: str) -> None:
    """ "How to read this" for a figure drawn by Streamlit."""
    import streamlit as st

    entry = get(name)
    with st.popover("How to read this", type="tertiary", icon=":material/help:"):
        st.markdown(entry.reading)
        st.latex(entry.formula)
        st.caption(entry.paper)


def show_metric(metric: Metric, more: str = "") -> None:
    """The same for a metric: what it sees and what it cannot, as the catalogue claims it and the tests measure it."""
    import streamlit as st

    with st.popover(f"About {metric.title}", type="tertiary", icon=":material/help:"):
        st.markdown("  \n".join(plain(text) for text in (metric.sees, metric.blind_to, metric.help, more) if text))
        st.latex(metric.equation)
        claims = (
            f"Range: {metric.range.text}. Isotropic: {metric.at_isotropy.text}. Enough points: {metric.enough.text}."
        )
        st.caption(plain(claims))
        st.caption(plain(f"{metric.paper.text}, {metric.paper.identifier}"))
