"""The sections of Explore below the map. A folded section computes nothing; the address says which are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from dashboard.explore import layer_curves, numbers, rogue_card, sections, similarity
from dashboard.explore.form import PREFIX, Pane
from dashboard.inputs import set_sections
from dashboard.shared import explanations
from dashboard.shared.stable import stable


@dataclass(frozen=True)
class Section:
    """A section of the page that folds.

    Attributes:
        name: its anchor, and its parameter in the address, which is present only if it differs from the default.
        draw: draws its content.
        applies: whether these panes have it.
        open_at_first: open by default.
    """

    name: str
    title: str
    draw: Callable[[list[Pane]], None]
    applies: Callable[[list[Pane]], bool] = bool
    open_at_first: bool = False

    @stable
    def show(self, panes: list[Pane]) -> None:
        """Draw the section, with its content if it is open."""
        if not self.applies(panes):
            return
        st.html(f'<span id="{self.name}"></span>')  # an expander has no anchor
        key = f"{PREFIX}show_{self.name}"
        panel = st.expander(self.title, self.open_at_first, key=key, bind="query-params")
        if panel.open:
            with panel:
                self.draw(panes)


def _of_vectors(panes: list[Pane]) -> bool:
    return len(panes) == 1 and panes[0].of_vectors


def _sliced(panes: list[Pane]) -> bool:
    return _of_vectors(panes) and bool(set_sections.columns_of(_set(panes)[0]))


def _set(panes: list[Pane]) -> tuple[str, str]:
    """Key of the vectors, and prefix of the fields."""
    return panes[0].view.facts["data_fingerprint"], panes[0].prefix


NUMBERS: Final = Section("numbers", "All numbers", numbers.section, open_at_first=True)
ROGUE: Final = Section("rogue", rogue_card.ROGUE.title, rogue_card.section, open_at_first=True)
FIGURES: Final = (
    Section("figures", "Figures", sections.cloud_figures),
    Section("correlations", explanations.MATRIX.title, sections.correlations),
    Section("across", "Across layers", layer_curves.section, layer_curves.applies),
    Section("similarity", similarity.CKA.title, similarity.section, similarity.applies),
    Section("rows", set_sections.ROWS, lambda panes: set_sections.rows(*_set(panes)), _of_vectors),
    Section("slices", set_sections.SLICES, lambda panes: set_sections.slices(*_set(panes)), _sliced),
    Section("output", "Output matrix", sections.output_matrix, sections.has_output),
)


def jumps(panes: Sequence[Pane]) -> None:
    """Links to the sections below, because the page is several screens long."""
    links = [
        f"[{section.title}](#{section.name})" for section in (ROGUE, NUMBERS, *FIGURES) if section.applies(list(panes))
    ]
    st.caption(" · ".join(["Go to: [Map](#map)", *links, "[Share](#share)"]))
