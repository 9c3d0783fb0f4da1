"""Train: choose, see what it will cost, launch."""

from __future__ import annotations

import streamlit as st

from dashboard import launch_panel, presets, train_form

st.title("Train", anchor=False)
st.caption(
    "Fine-tune models with isotropy methods: pick what to compare, see what it takes, launch. Every combination is one run."
)

presets.fill_from_address()
presets.buttons()
form, panel = st.columns([13, 7], gap="large")
with form:
    filled = train_form.draw()
with panel:
    launch_panel.panel(filled)
