"""Papers: the claims of four papers, and each of their tables and figures, published and measured here."""

import streamlit as st

from dashboard.papers import scoreboard, sections
from dashboard.shared import address
from dashboard.shared.stable import place_of

st.title("Papers", anchor=False)
st.caption(
    "Every table and figure of four papers on isotropy: published numbers, numbers measured here, and whether the claims hold."
)

with address.report_ignored("papers"):
    choice = sections.choose()
    with place_of(choice.slug if choice else "", sections.keys()):
        if choice is None:
            scoreboard.draw()
        else:
            sections.about(choice)
            sections.heading(choice)
            sections.printed(choice)
            sections.measured(choice)
            sections.reservations(choice)
