"""Python side of the correlation matrix: one run, epoch by epoch, drawn from the arrays route."""

from __future__ import annotations

import streamlit as st

from dashboard.components import bundle
from dashboard.server import routes
from dashboard.shared import explanations
from isoviz.runs.rows import RunRow

_mount = st.components.v2.component(
    "isoviz_matrix",
    html=bundle("matrix.html"),
    css=bundle("help.css", "matrix.css"),
    js=bundle("fold.js", "recording.js", "feed.js", "look.js", "matrix_canvas.js", "matrix.js"),
    isolate_styles=False,  # shares the poll of the live lines, so it lives in the same document
)


def matrix(run: RunRow, *, key: str) -> None:
    """Mount the clustered |ρ| matrix of a run's head cloud; it follows the newest epoch until the user selects another."""
    _mount(
        key=key,
        data={
            "run": run.id,
            "events": f"{routes.PREFIX}/events",
            "arrays": f"{routes.PREFIX}/arrays",
            "help": explanations.MATRIX.plain(),
            "seen": run.status,
        },
    )
