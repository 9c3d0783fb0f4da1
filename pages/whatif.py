"""What-if: a finished run's embeddings, or any vectors, under transforms."""

import streamlit as st

from dashboard.whatif import start

with st.container(horizontal=True, vertical_alignment="center"):
    st.title("What-if", anchor=False, width="content")
    source = st.container(width="content")
st.caption(
    "Transform embeddings and see instantly how that changes their isotropy and their use for a run's classifier, "
    "search, similarity or labels."
)

with source:
    own = start.from_vectors()
if own:
    start.draw_vectors()
else:
    start.draw_run()
