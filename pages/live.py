"""Live: running and waiting runs, and the selected run as it trains."""

import streamlit as st

from dashboard.live import sections
from dashboard.shared import job_progress

st.title("Live", anchor=False)
st.caption("Watch runs train: progress, losses, the task's metric and the isotropy of the embeddings as they change.")

run = sections.selected()
if run is None:
    sections.empty_state()
else:
    sections.activity(run)
    sections.finding(run)
    sections.charts(run)
    job_progress.log_panel(run)
