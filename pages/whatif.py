"""What-if: a finished run's embeddings under transforms."""

from __future__ import annotations

import streamlit as st

from dashboard import address, whatif

st.title("What-if", anchor=False)
st.caption(
    "Transform a finished run's embeddings and see at once what becomes of their isotropy, and of what its head can still read."
)

with address.heard("whatif"):
    run = whatif.choose()
    if run is not None:
        key = whatif.embeddings_of(run)
        if key is not None:
            whatif.panel(run, key)
