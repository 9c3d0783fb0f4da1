"""Explore: encoders on tasks, layer by layer."""

import streamlit as st

from dashboard.explore import analysis, folding, form, point_map, sections, sharing
from dashboard.shared import address

st.title("Explore", anchor=False)
st.caption("See how evenly each layer of an encoder spreads its embeddings, and which dimensions stand out.")

with address.report_ignored("explore"):
    view_forms = form.draw_all()
    views = analysis.obtain(view_forms)
    if views:
        analysis.heading(views, view_forms)
        links = st.container()
        panes = sections.profile(views, view_forms)
        with links:
            folding.jumps(panes)
        map_request = point_map.section(panes)
        folding.ROGUE.show(panes)
        tables = st.container()
        for section in folding.FIGURES:
            section.show(panes)
        sharing.section(panes, map_request)
        with tables:
            folding.NUMBERS.show(panes)
        analysis.complete(view_forms)
