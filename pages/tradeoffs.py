"""Trade-offs: isotropy against task performance, one point per run."""

import streamlit as st

from dashboard.shared import menu, run_lists
from dashboard.tradeoffs import sections

st.title("Trade-offs", anchor=False)
menu.views(menu.TRADEOFFS)
st.caption("Does the task gain or lose when embeddings become more isotropic? One point per run.")

facets = run_lists.facets()
if facets.empty:
    sections.empty_state()
else:
    choice = sections.choose(facets)
    sections.figures(choice)
