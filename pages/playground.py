"""Playground: a cloud shaped by controls, and every measure beside its true value."""

import streamlit as st

from dashboard.components.playground.mounted import playground, responses_table

st.title("Playground", anchor=False)
st.caption(
    "Shape a cloud of points and watch how each isotropy measure responds. Below, a table shows which measure sees what."
)
playground(key="playground")
responses_table()
