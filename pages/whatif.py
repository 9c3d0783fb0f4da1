"""What-if: a finished run's embeddings under transforms."""

from __future__ import annotations

import streamlit as st

from dashboard import address
from dashboard.whatif import sections

st.title("What-if", anchor=False)
st.caption(
    "Transform a finished run's embeddings and see at once what becomes of their isotropy, and of what its head can still read."
)

with address.report_ignored("whatif"):
    run = sections.choose()
    if run is not None:
        key = sections.embeddings_of(run)
        if key is not None:
            sections.draw_panel(run, key)
