"""One run: results, configuration, and how to repeat it."""

import streamlit as st

from dashboard.run import sections
from dashboard.shared import job_progress

run = sections.selected()
if run is not None:
    sections.heading(run)
    sections.curves(run)
    sections.predictions(run)
    left, right = st.columns(2, gap="large")
    with left:
        sections.numbers(run)
        sections.provenance(run)
    with right:
        sections.configuration(run)
        sections.reproduce(run)
        sections.edit(run)
    job_progress.log_panel(run)
