"""Explore: encoders on tasks, layer by layer, from every side."""

from __future__ import annotations

import streamlit as st

from dashboard import address
from dashboard.explore import asking, clouds, form, map_section, numbers, output_matrix, profile, share

st.title("Explore", anchor=False)
st.caption(
    "Look into an encoder as it is: how evenly each layer spreads its embeddings, and which dimensions stand out."
)

with address.heard("explore"):
    filled = form.draw_all()
    views = asking.ask(filled)
    if views:
        numbers.heading(views, filled)
        shown = profile.section(views, filled)
        laid_out = map_section.section(shown)
        clouds.section(shown)
        output_matrix.section(shown)
        tables = st.container()
        share.section(shown, laid_out)
        with tables:
            numbers.section(shown)
