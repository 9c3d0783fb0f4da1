"""Live: running and waiting runs, and the selected run as it trains."""

from __future__ import annotations

import streamlit as st

from dashboard import live, logs

st.title("Live", anchor=False)
st.caption("Watch runs train: progress, losses, the task's metric and the isotropy of the embeddings as they change.")

run = live.selected()
if run is None:
    live.empty_state()
else:
    live.activity(run)
    live.finding(run)
    live.charts(run)
    logs.panel(run)
