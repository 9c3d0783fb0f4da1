"""Methods: every method, measure and transform, generated from the catalogues."""

from __future__ import annotations

import streamlit as st

from dashboard import address, methods_reference

st.title("Methods", anchor=False)
st.caption("How each method works, what each measure detects, and what each transform does to a cloud.")

with address.report_ignored(methods_reference.PREFIX):
    kind, slug = methods_reference.choose()
    methods_reference.show(kind, slug)
