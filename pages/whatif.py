"""What-if: a finished run's embeddings, or any vectors, under transforms."""

import streamlit as st

from dashboard.shared import address
from dashboard.whatif import start

st.title("What-if", anchor=False)
st.caption(
    "Transform embeddings and see instantly how that changes their isotropy and their use for a run's classifier, "
    "search, similarity or labels."
)

with address.report_ignored("whatif"):
    if start.from_vectors():
        start.draw_vectors()
    else:
        start.draw_run()
