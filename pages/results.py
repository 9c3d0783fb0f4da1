"""Results: tables with every seed visible."""

import streamlit as st

from dashboard.results import sections
from dashboard.shared import menu, run_lists

st.title("Results", anchor=False)
menu.views(menu.RESULTS)
st.caption("Compare runs: means, all seeds, and runs that failed or collapsed.")

facets = run_lists.facets()
if facets.empty:
    sections.empty_state()
else:
    run_filter = sections.filters(facets)
    isotropy = sections.isotropy_field(facets, run_filter)
    sections.by_task(run_filter, isotropy)
    sections.export("Results", run_filter.group or "runs", run_filter, isotropy)
