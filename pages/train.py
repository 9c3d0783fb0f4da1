"""Train: choose, estimate, launch."""

import streamlit as st

from dashboard.shared import resources
from dashboard.train import form, launch_panel, presets

st.title("Train", anchor=False)
st.caption(
    "Fine-tune models with isotropy methods: choose what to compare, see how long it takes, launch. Each combination is one run."
)

resources.expect_runs()
presets.fill_from_address()
presets.buttons()
left, right = st.columns([13, 7], gap="large")
with left:
    train_form = form.draw()
with right:
    launch_panel.panel(train_form)
