"""Explore: encoders on tasks, layer by layer, from every side."""

from __future__ import annotations

import streamlit as st

from dashboard import address
from dashboard.explore import analysis, form, numbers, point_map, sections, sharing, similarity

st.title("Explore", anchor=False)
st.caption("See how evenly each layer of an encoder spreads its embeddings, and which dimensions stand out.")

with address.report_ignored("explore"):
    filled = form.draw_all()
    views = analysis.ask(filled)
    if views:
        analysis.heading(views, filled)
        analysis.jumps()
        chosen = sections.profile(views, filled)
        map_request = point_map.section(chosen)
        sections.cloud_figures(chosen)
        similarity.section(chosen)
        sections.output_matrix(chosen)
        tables = st.container()
        sharing.take_along(chosen, map_request)
        with tables:
            numbers.section(chosen)
        analysis.complete(filled)
