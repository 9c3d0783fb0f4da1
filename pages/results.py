"""Results: tables with every seed visible."""

from __future__ import annotations

import streamlit as st

from dashboard import results

st.title("Results", anchor=False)
st.caption("Compare runs: means with every seed beside them, and which runs failed or collapsed.")

runs = results.all_runs()
if runs.empty:
    results.nothing_yet()
else:
    chosen = results.filters(runs)
    isotropy = results.isotropy_field()
    results.by_task(chosen, isotropy)
    results.every_run(chosen, isotropy)
