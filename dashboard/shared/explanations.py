"""Texts of "How to read this" for every figure: two sentences, the formula, the paper.

A figure's explanation is next to the function that draws it; this file has those of figures on several pages.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.shared.wording import plain
from isoviz.metrics.protocol import Metric


@dataclass(frozen=True)
class Explanation:
    """Explanation of a figure or number.

    Attributes:
        title: heading of the figure.
        reading: two plain sentences on how to read it.
        formula: LaTeX.
        paper: source.
        formula_text: the formula in Unicode, for components, which have no LaTeX.
    """

    title: str
    reading: str
    formula: str
    paper: str
    formula_text: str = ""

    def plain(self) -> dict[str, str]:
        """Text-only form, for components."""
        return {"title": self.title, "reading": self.reading, "formula": self.formula_text, "paper": self.paper}


SPECTRUM = Explanation(
    title="Explained variance EV_k",
    reading=(
        "The share of the variance in the k strongest directions. A curve that rises steeply at first means that a few "
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
    """A button that opens the explanation. Two adjacent buttons need different labels."""
    import streamlit as st

    with st.popover(label, type="tertiary", icon=":material/help:"):
        st.markdown(entry.reading)
        st.latex(entry.formula)
        st.caption(entry.paper)


def show_metric(metric: Metric, more: str = "") -> None:
    """The same for a metric: what it detects and what it misses, as stated in the catalogue and checked by tests."""
    import streamlit as st

    with st.popover(f"About {metric.title}", type="tertiary", icon=":material/help:"):
        st.markdown(
            "  \n".join(
                plain(text) for text in (metric.sees, metric.blind_to, metric.help, metric.comparison, more) if text
            )
        )
        st.latex(metric.equation)
        claims = (
            f"Range: {metric.range.text}. Isotropic: {metric.at_isotropy.text}. Enough points: {metric.enough.text}."
        )
        st.caption(plain(claims))
        st.caption(plain(f"{metric.paper.text}, {metric.paper.identifier}"))
