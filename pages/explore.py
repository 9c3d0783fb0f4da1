"""Explore: an encoder on a task, layer by layer."""

from __future__ import annotations

import streamlit as st

from dashboard import explore, explore_form

st.title("Explore", anchor=False)
st.caption(
    "Look into an encoder as it is: how evenly each layer spreads its embeddings, and which dimensions stand out."
)

filled = explore_form.draw()
view = explore.ask(filled)
if view is not None:
    explore.heading(view)
    layer, pooling = explore.profile(view)
    explore.cloud(view, layer, pooling)
    explore.numbers(view, filled)
