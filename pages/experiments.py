"""Experiments: runs that were launched together, and everything that is known of one of them."""

from __future__ import annotations

import streamlit as st

from dashboard import experiments, run_queue

name = experiments.chosen()
if name is None:
    st.title("Experiments", anchor=False)
    st.caption("Runs that were launched together. Open one for its runs, its tables, its trade-off and its report.")
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
