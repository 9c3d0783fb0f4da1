"""What stands behind "How to read this", beside every figure: two sentences, the formula, the paper.

A figure's explanation stands with the function that draws it; here are those of figures that several pages draw.
"""

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


SPECTRUM = Explanation(
    title="Explained variance EV_k",
    reading=(
        "The share of the variance in the k strongest directions. A curve that jumps up at once means that a few "
        "directions dominate; for a perfectly isotropic cloud it rises evenly, reaching 1 at k = d."
    ),
    formula=r"\mathrm{EV}_k = \frac{\sum_{i \le k} \sigma_i^2}{\sum_i \sigma_i^2}",
    formula_text="EV_k = (σ₁² + … + σ_k²) / (σ₁² + … + σ_d²),  singular values of the centred cloud",
    paper="Zhou et al. 2021 (IsoBN), equation 9.",
)

MATRIX = Explanation(
    title="Correlation of dimensions",
    reading=(
        "Each cell shows how strongly two dimensions vary together; correlated dimensions stand side by side. "
        "Strong blocks mean redundant dimensions; an isotropic cloud is empty off the diagonal."
    ),
    formula=r"|\rho_{ij}| = \frac{|\operatorname{cov}(x_i, x_j)|}{\sigma_i \sigma_j}",
    formula_text="|ρ_ij| = |cov(x_i, x_j)| / (σ_i σ_j);  order: average linkage on 1 − |ρ|, optimal leaf order",
    paper="Zhou et al. 2021 (IsoBN), figure 2.",
)


def show(entry: Explanation, label: str = "How to read this") -> None:
    """The explanation behind a button; of two side by side, one needs a label of its own."""
    import streamlit as st

    with st.popover(label, type="tertiary", icon=":material/help:"):
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
