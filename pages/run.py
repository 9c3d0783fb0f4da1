"""One run: results, configuration, and how to repeat it."""

from __future__ import annotations

import streamlit as st

from dashboard import logs, run_view

run = run_view.selected()
if run is not None:
    run_view.heading(run)
    run_view.curves(run)
    run_view.predictions(run)
    left, right = st.columns(2, gap="large")
    with left:
        run_view.numbers(run)
        run_view.provenance(run)
    with right:
        run_view.configuration(run)
        run_view.reproduce(run)
        run_view.edit(run)
    logs.panel(run)
