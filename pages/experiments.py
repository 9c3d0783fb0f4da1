"""Experiments: runs that were launched together, and everything that is known of one of them."""

from __future__ import annotations

import streamlit as st

from dashboard import experiments

name = experiments.chosen()
if name is None:
    st.title("Experiments", anchor=False)
    st.caption("Runs that were launched together. Open one for its runs, its tables, its trade-off and its report.")
    experiments.listing()
else:
    experiments.heading(name)
    experiments.add_seeds(name)
    experiments.report(name)
    experiments.comparison(name)
    experiments.tradeoff(name)
    experiments.runs(name)
