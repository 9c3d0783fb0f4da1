"""Experiments: runs that were launched together, and the details of one experiment."""

import streamlit as st

from dashboard.experiments import sections
from dashboard.live import queue
from dashboard.shared import menu

name = sections.selected()
if name is None:
    st.title("Experiments", anchor=False)
    menu.views(menu.EXPERIMENTS)
    st.caption("Runs that were launched together. Open an experiment to see its runs, tables and report.")
    sections.listing()
else:
    sections.heading(name)
    queue.panel(name)
    sections.add_seeds(name)
    sections.comparison(name)
    sections.runs(name)
