"""Methods: every method, measure and transform, generated from the catalogues."""

import streamlit as st

from dashboard.methods import sections
from dashboard.shared import menu

st.title("Methods", anchor=False)
menu.views(menu.METHODS)
st.caption("How each method works, what each measure detects, and what each transform does to a cloud.")

kind, slug = sections.choose()
sections.show(kind, slug)
