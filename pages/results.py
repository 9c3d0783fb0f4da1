"""Results: tables with every seed visible."""

from __future__ import annotations

import streamlit as st

from dashboard import results, run_lists
from dashboard.report import offering

st.title("Results", anchor=False)
st.caption("Compare runs: means with every seed beside them, and which runs failed or collapsed.")

facets = run_lists.facets()
if facets.empty:
    results.nothing_yet()
else:
    chosen = results.filters(facets)
    isotropy = results.isotropy_field(facets, chosen)
    results.by_task(chosen, isotropy)
    results.every_run(chosen, isotropy)
    offering.selection(chosen, chosen.group or "results", key="results_report")
