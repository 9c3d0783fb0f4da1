"""Papers: the claims of four papers, and each of their tables and figures, published and measured here."""

import streamlit as st

from dashboard.papers import scoreboard, sections

st.title("Papers", anchor=False)
st.caption(
    "Every table and figure of four papers on isotropy: published numbers, numbers measured here, and whether the claims hold."
)

choice = sections.choose()
if choice is None:
    scoreboard.draw()
else:
    sections.about(choice)
    sections.heading(choice)
    sections.printed(choice)
    sections.measured(choice)
    sections.reservations(choice)
