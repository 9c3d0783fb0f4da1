"""The sections of Explore below the map. Each one folds; a folded section computes nothing, and the address says which are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from dashboard import explanations
from dashboard.explore import numbers, sections, similarity
from dashboard.explore.form import PREFIX, ChosenCloud
from dashboard.steady import steady


@dataclass(frozen=True)
class Section:
    """A part of the page that folds.

    Attributes:
        name: of its anchor, and of its parameter in the address, which is there where it is not as it begins.
        draw: draws its content.
        applies: whether these clouds have it.
        open_at_first: whether it begins open.
    """

    name: str
    title: str
    draw: Callable[[list[ChosenCloud]], None]
    applies: Callable[[list[ChosenCloud]], bool] = bool
    open_at_first: bool = False

    @steady
    def show(self, chosen: list[ChosenCloud]) -> None:
        """Draw it: its content where it is open."""
        if not self.applies(chosen):
            return
        st.html(f'<span id="{self.name}"></span>')  # an expander has no anchor
        key = f"{PREFIX}show_{self.name}"
        panel = st.expander(self.title, self.open_at_first, key=key, bind="query-params")
        if panel.open:
            with panel:
                self.draw(chosen)


NUMBERS: Final = Section("numbers", "All numbers", numbers.section, open_at_first=True)
FIGURES: Final = (
    Section("figures", "Figures", sections.cloud_figures),
    Section("correlations", explanations.MATRIX.title, sections.correlations),
    Section("similarity", similarity.CKA.title, similarity.section, similarity.applies),
    Section("output", "Output matrix", sections.output_matrix, sections.have_output),
)


def jumps(chosen: Sequence[ChosenCloud]) -> None:
    """Links to the sections below: the page is several screens long."""
    links = [f"[{part.title}](#{part.name})" for part in (NUMBERS, *FIGURES) if part.applies(list(chosen))]
    st.caption(" · ".join(["Go to: [Map](#map)", *links, "[Share](#share)"]))
