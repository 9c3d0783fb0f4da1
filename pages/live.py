"""Live: what runs and waits, and the chosen run as it trains."""

from __future__ import annotations

import streamlit as st

from dashboard import live

st.title("Live", anchor=False)
st.caption("Watch runs train: progress, losses, the task's metric and the isotropy of the embeddings as they change.")

run = live.chosen()
if run is None:
    live.nothing_yet()
else:
    live.activity(run)
    live.charts(run)
    live.log(run)
