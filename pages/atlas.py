"""Atlas: recorded encoders side by side."""

import streamlit as st

from dashboard.atlas import sections
from dashboard.shared import address

st.title("Atlas", anchor=False)
st.caption(
    "Compare recorded encoders: the cosines of unrelated texts, what separates related ones, and the isotropy of each layer."
)

with address.report_ignored("atlas"):
    choice = sections.choose()
    sections.figures(choice)
    sections.table(choice)
    sections.reservations(choice)
