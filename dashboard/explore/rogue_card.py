"""Explore's card on rogue dimensions: which, how far out, their shares, and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard.explore.form import Pane
from dashboard.explore.sections import cached
from dashboard.shared import explanations, exported, tables, wording
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedTable
from isoviz.exploring.rogue import RogueDimensions, rogue_dimensions
from isoviz.metrics.dimensions import dead_words

ROGUE = Explanation(
    title="Rogue dimensions",
    reading=(
        "Dimensions whose mean or spread is more than three standard deviations from the average of all dimensions. A few of them "
        "can determine every cosine. By chance, about one dimension in 370 is that far out."
    ),
    formula=r"|\bar x_j - m| > 3 s \quad\text{or}\quad |\sigma_j - m_\sigma| > 3 s_\sigma",
    paper="Timkey & van Schijndel 2021; the rule of three: Kovaleva et al. 2021.",
)
_SHOWN = 8


def section(panes: list[Pane]) -> None:
    """The card of every view."""
    explanations.show(ROGUE)
    for pane, column in zip(panes, st.columns(len(panes), gap="medium"), strict=True):
        with column:
            name = f"View {pane.number}: " if pane.views > 1 else ""
            st.caption(wording.plain(f"{name}{pane.cloud_words}"))
            _card(pane, _measured(pane))


@cached()
def _measured(pane: Pane) -> RogueDimensions | None:
    mean, sigma = pane.array("mean"), pane.array("sigma")
    if mean is None or sigma is None:
        return None
    return rogue_dimensions(mean, sigma, pane.view.points(pane.layer, pane.pooling))


def _card(pane: Pane, rogue: RogueDimensions | None) -> None:
    if rogue is None:
        st.caption("Not available for this cloud.")
        return
    if rogue.dead:
        st.caption(f"{dead_words(rogue.dead)}.")
    if not len(rogue.numbers):
        st.markdown("No rogue dimensions: no mean or spread is more than three standard deviations out.")
        return
    answer = shares(rogue)
    noted = ExportedTable(f"Rogue dimensions: {pane.cloud_words}", table(rogue), (answer,))
    exported.note(f"explore_rogue_{pane.number}", noted)
    st.markdown(tables.as_markdown(table(rogue)))
    if len(rogue.numbers) > _SHOWN:
        st.caption(f"The {_SHOWN} most extreme of {len(rogue.numbers)}.")
    st.caption(
        "Mean and spread: distance from the median dimension in robust standard deviations; far: by the rule. Variance and "
        "cosine: shares of the total variance and of the mean cosine."
    )
    st.markdown(answer)


def table(rogue: RogueDimensions) -> pd.DataFrame:
    """One row per rogue dimension, as text: its distances in robust standard deviations, and its shares."""

    def distances(values: NDArray[np.float64], far: NDArray[np.bool_]) -> list[str]:
        texts = ["–" if np.isnan(value) else f"{value:.1f}".replace("-", "−") for value in values]
        return [f"{text} (far)" if beyond else text for text, beyond in zip(texts, far, strict=True)]

    def percent(values: NDArray[np.float64]) -> list[str]:
        return ["–" if np.isnan(value) else f"{100 * value:.1f} %".replace("-", "−") for value in values]

    columns = {
        "Dim.": rogue.numbers.astype(str),
        "Mean": distances(rogue.mean_distance, rogue.of_mean),
        "Spread": distances(rogue.spread_distance, rogue.of_spread),
        "Variance": percent(rogue.variance),
        "Cosine": percent(rogue.cosine),
    }
    return pd.DataFrame(columns).head(_SHOWN)


def shares(rogue: RogueDimensions) -> str:
    """What all rogue dimensions together hold of variance and mean cosine, and how many neighbours stay without them."""
    count = len(rogue.numbers)
    text = f"{'It holds' if count == 1 else f'These {count} hold'} {100 * rogue.variance.sum():.0f} % of the variance"
    if rogue.mean_cosine is not None and rogue.mean_cosine_without is not None:
        before, after = (wording.number(value, 2) for value in (rogue.mean_cosine, rogue.mean_cosine_without))
        text += f". The mean cosine is {before} with, and {after} without {'it' if count == 1 else 'them'}"
    if rogue.overlap is not None and rogue.overlap.value is not None:
        text += f". Without {'it' if count == 1 else 'them'}, {100 * rogue.overlap.value:.0f} % of the 10 nearest neighbours stay"
    return f"{text} (n = {rogue.points:,})."
