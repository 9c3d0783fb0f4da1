"""Papers: every table and figure of four papers, published and measured here."""

from __future__ import annotations

import streamlit as st

from dashboard import address
from dashboard.papers import sections

st.title("Papers", anchor=False)
st.caption(
    "Every table and figure of four papers on isotropy: published numbers, numbers measured here, and whether the claims hold."
)

with address.report_ignored("papers"):
    choice = sections.choose()
    sections.about(choice)
    sections.heading(choice)
    sections.printed(choice)
    sections.measured(choice)
    sections.reservations(choice)
    sections.all_claims(choice)
