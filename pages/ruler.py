"""Ruler: what a cosine means for an encoder."""

import streamlit as st

from dashboard.inputs import set_choice, vectors_form
from dashboard.ruler import panel
from dashboard.ruler.form import PREFIX
from dashboard.shared import address, menu

st.title("Ruler", anchor=False)
st.caption(
    "Is this cosine high? See where it lies among unrelated pairs, how likely such a pair is related, and which threshold holds."
)

with address.report_ignored("ruler"):
    first = menu.OWN_SET if vectors_form.has_set(PREFIX) else "demo/similarity"
    key = set_choice.key_field(PREFIX, first)
    if key is not None:
        panel.draw(key)
