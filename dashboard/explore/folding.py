"""The fields of Explore, which fold into one line, and the tabs below its pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.explore import layer_curves, numbers, rogue_card, sections, sharing, similarity
from dashboard.explore.figures import POOLING_TITLES
from dashboard.explore.form import PREFIX, Pane
from dashboard.inputs import set_sections, vectors_form
from dashboard.shared import choosing, menu, wording
from dashboard.shared.stable import stable
from isoviz.exploring import encoders
from isoviz.exploring.maps import MapRequest

_ASKED: Final = PREFIX + "change"
"""Session key: the visitor has asked for the fields."""
_SHOWN: Final = PREFIX + "shown"
"""Session key: views were shown when the page was last drawn."""
PURPOSE: Final = "See how evenly each layer of an encoder spreads its embeddings, and which dimensions stand out."


@contextmanager
def fields() -> Iterator[DeltaGenerator]:
    """The title with room for one line beside it, and a container for the fields. `app.css` hides the fields unless they are asked for
    or nothing is shown: here from what was shown last, so that they do not flash, and finally by `line`."""
    folded = st.session_state.get(_SHOWN, True) and not st.session_state.get(_ASKED)
    with st.container(horizontal=True, vertical_alignment="center", key=PREFIX + ("guess" if folded else "head")):
        st.title("Explore", anchor=False, width="content")
        place = st.container()
    # the height hides them until the styles are there
    with st.container(key=PREFIX + "fields", height=1 if folded else "content", border=False):
        yield place


def line(place: DeltaGenerator, panes: list[Pane]) -> None:
    """The fields in one line with *Change*, or the page's purpose where no view is shown."""
    st.session_state[_SHOWN] = bool(panes)
    if not panes:
        st.session_state[_ASKED] = False
    asked = bool(st.session_state.get(_ASKED)) or not panes
    with (
        place,
        st.container(horizontal=True, vertical_alignment="center", key=PREFIX + ("unfold" if asked else "fold")),
    ):
        if not panes:
            st.caption(PURPOSE)
            return
        pane = panes[0]
        rows = f"{pane.source} · {pane.view.facts['rows']:,}"
        cloud = f"layer {pane.layer}, {POOLING_TITLES.get(pane.pooling, pane.pooling)}"
        words = f"{rows} vectors" if pane.of_vectors else f"{rows} rows · {cloud}"
        words = words if len(panes) == 1 else f"{len(panes)} views side by side"
        st.markdown(wording.plain(words), width="content")
        label = "Done" if asked else "Change"
        st.button(label, key=PREFIX + "fold_fields", icon=":material/edit:", type="tertiary", on_click=_turn)
        own_set, request = panes[0].form.own_set, panes[0].form.request
        if own_set is not None and request is not None:
            model = "" if request.model.startswith(encoders.RUN) else request.model
            st.page_link(
                menu.WHATIF,
                label="Transform in What-if",
                icon=":material/tune:",
                query_params=menu.whatif_own(own_set.key, model),
            )
    own_sets = [] if asked else [pane.form.own_set for pane in panes if pane.form.own_set is not None]
    for caution in dict.fromkeys(caution for own_set in own_sets for caution in vectors_form.cautions(own_set)):
        st.caption(f":material/warning: {caution}")
    for pane in panes:
        if pane.of_vectors and pane.form.own_set is not None and not asked:
            vectors_form.oddities(pane.prefix, pane.form.own_set)


def _turn() -> None:
    st.session_state[_ASKED] = not st.session_state.get(_ASKED)


# --------------------------------------------------------------------------------------------------------------- tabs


@dataclass(frozen=True)
class Section:
    """A tab below the pictures; only the open one is computed.

    Attributes:
        draw: draws its content.
        applies: whether these panes have it.
    """

    title: str
    draw: Callable[[list[Pane]], None]
    applies: Callable[[list[Pane]], bool] = bool


def _of_vectors(panes: list[Pane]) -> bool:
    return len(panes) == 1 and panes[0].of_vectors


def _set(panes: list[Pane]) -> tuple[str, str]:
    """Key of the vectors, and prefix of the fields."""
    return panes[0].view.facts["data_fingerprint"], panes[0].prefix


SECTIONS: Final = (
    Section(rogue_card.ROGUE.title, rogue_card.section),
    Section("All numbers", numbers.section),
    Section("Means, spreads and cosines", sections.cloud_figures),
    Section("Across layers", layer_curves.section, layer_curves.applies),
    Section(similarity.CKA.title, similarity.section, similarity.applies),
    Section("Output matrix", sections.output_matrix, sections.has_output),
    Section("Row by row", lambda panes: set_sections.rows(*_set(panes)), _of_vectors),
    Section(
        set_sections.SLICES,
        lambda panes: set_sections.slices(*_set(panes)),
        lambda panes: _of_vectors(panes) and bool(set_sections.columns_of(_set(panes)[0])),
    ),
)
"""All tabs in their order. To add one, add its line here."""
TAB: Final = PREFIX + "tab"


@stable
def tabs(panes: list[Pane], request: MapRequest) -> None:
    """The tabs, of which the address names the open one, and *Share*, which stays in view below them."""
    shown = [section for section in SECTIONS if section.applies(panes)]
    drawn = choosing.tabs([section.title for section in shown], TAB)
    for section in shown:
        tab = drawn[section.title]
        if tab.open:
            with tab:
                section.draw(panes)
        elif section.draw is numbers.section:
            numbers.section(panes, shown=False)  # saved pages have all numbers
    sharing.section(panes, request)
