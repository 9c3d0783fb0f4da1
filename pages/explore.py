"""Explore: encoders on tasks, layer by layer, from every side."""

from __future__ import annotations

import streamlit as st

from dashboard import address, explore, explore_form, explore_map, explore_output, explore_share, explore_views

st.title("Explore", anchor=False)
st.caption(
    "Look into an encoder as it is: how evenly each layer spreads its embeddings, and which dimensions stand out."
)

with address.heard("explore"):
    filled = explore_form.draw_all()
    views = explore.ask(filled)
    if views:
        explore.heading(views, filled)
        shown = explore_views.profile(views, filled)
        laid_out = explore_map.section(shown)
        explore_views.clouds(shown)
        explore_output.section(shown)
        tables = st.container()
        explore_share.section(shown, laid_out)
        with tables:
            explore.numbers(shown)
