"""Home: what isotropy is, where to start, what is going on."""

from __future__ import annotations

import streamlit as st

from dashboard import home
from dashboard.train import presets

st.title("IsoViz", anchor=False)
st.caption(
    "See how evenly a language model spreads its embeddings, fine-tune it with isotropy methods, and watch both change."
)

home.what_isotropy_is()
st.subheader("Start here", anchor=False)
presets.cards()
home.runs()
home.embedded_model()
