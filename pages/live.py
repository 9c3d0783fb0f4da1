"""Live: running and waiting runs, the selected run as it trains, and trainings watched elsewhere."""

import streamlit as st

from dashboard.live import sections, watched
from dashboard.shared import job_progress
from dashboard.shared.watched import found

st.title("Live", anchor=False)
st.caption("Watch runs train: progress, losses, the task's metric and the isotropy of the embeddings as they change.")

others = found()
training = watched.selected(others)
watched.trainings(others, training)
run = None if training else sections.selected()
if training:
    watched.view(training, others.trainings[training])
elif run is None:
    sections.empty_state()
else:
    sections.activity(run)
    sections.finding(run)
    sections.charts(run)
    job_progress.log_panel(run)
