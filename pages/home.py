"""Home: what isotropy is, where to start, and current runs."""

import streamlit as st

from dashboard.home import sections
from dashboard.train import presets

st.title("IsoViz", anchor=False)
st.caption(
    "See how evenly a language model spreads its embeddings, fine-tune it with isotropy methods, and watch both change."
)

sections.ways_in()
sections.cloud()
st.header("Compare methods now", anchor=False)
presets.cards()
sections.runs()
