"""Explore: encoders on tasks, layer by layer."""

import streamlit as st

from dashboard.explore import analysis, folding, form, point_map, sections

with folding.fields() as line:
    view_forms = form.draw_all()
    analyse, facts = st.container(), st.container()
views = analysis.obtain(view_forms, analyse)
panes = sections.select(views, view_forms) if views else []
folding.line(line, panes)
if panes:
    analysis.heading(views, view_forms, facts)
    sections.sentences(panes)
    with st.container(key="explore_grid" if len(panes) == 1 else "explore_side_by_side"):
        cells = [*st.columns(2, gap="large"), *st.columns(2, gap="large")]
    with cells[0]:
        sections.profile(panes)
    with cells[1]:
        sections.spectrum(panes)
    with cells[2]:
        sections.correlations(panes)
    with cells[3]:
        map_request = point_map.section(panes)
    folding.tabs(panes, map_request)
    analysis.complete(view_forms)
