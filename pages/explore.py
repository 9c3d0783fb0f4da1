"""Explore: encoders on tasks, layer by layer, from every side."""

from __future__ import annotations

import streamlit as st

from dashboard import address
from dashboard.explore import analysis, folding, form, point_map, sections, sharing

st.title("Explore", anchor=False)
st.caption("See how evenly each layer of an encoder spreads its embeddings, and which dimensions stand out.")

with address.report_ignored("explore"):
    filled = form.draw_all()
    views = analysis.ask(filled)
    if views:
        analysis.heading(views, filled)
        links = st.container()
        chosen = sections.profile(views, filled)
        with links:
            folding.jumps(chosen)
        map_request = point_map.section(chosen)
        tables = st.container()
        for part in folding.FIGURES:
            part.show(chosen)
        sharing.take_along(chosen, map_request)
        with tables:
            folding.NUMBERS.show(chosen)
        analysis.complete(filled)
