"""What-if: a finished run's embeddings, or any vectors, under transforms."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import address
from dashboard.whatif import own_vectors, sections

st.title("What-if", anchor=False)
st.caption(
    "Transform embeddings and see instantly how that changes their isotropy and their use for a run's classifier, "
    "search, similarity or labels."
)

with address.report_ignored("whatif"):
    if own_vectors.start_field():
        own_vectors.draw()
    else:
        run = sections.choose()
        if run is not None:
            key = sections.embeddings_of(run)
            if key is not None:
                sections.draw_panel(run, key)
