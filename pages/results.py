"""Results: tables with every seed visible."""

from __future__ import annotations

import streamlit as st

from dashboard import results, run_lists
from dashboard.report import offering

st.title("Results", anchor=False)
st.caption("Compare runs: means, all seeds, and runs that failed or collapsed.")

facets = run_lists.facets()
if facets.empty:
    results.empty_state()
else:
    run_filter = results.filters(facets)
    isotropy = results.isotropy_field(facets, run_filter)
    results.by_task(run_filter, isotropy)
    results.every_run(run_filter, isotropy)
    offering.selection(run_filter, run_filter.group or "results", key="results_report")
