"""Compare: which encoder ranks higher on your questions."""

import streamlit as st

from dashboard.compare import form, sections

st.title("Compare", anchor=False)
st.caption(
    "Which encoder ranks higher on your questions? Two to six encoders on the same documents, question by question."
)

found = form.draw()
if found is not None:
    sections.draw(found)
sections.references()
