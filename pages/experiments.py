"""Experiments: runs that were launched together, and the details of one experiment."""

from __future__ import annotations

import streamlit as st

from dashboard import experiments, run_queue

name = experiments.selected()
if name is None:
    st.title("Experiments", anchor=False)
    st.caption("Runs that were launched together. Open an experiment to see its runs, tables, trade-off and report.")
    run_queue.panel()
    experiments.listing()
else:
    experiments.heading(name)
    run_queue.panel(name)
    experiments.add_seeds(name)
    experiments.report(name)
    experiments.comparison(name)
    experiments.tradeoff(name)
    experiments.runs(name)
