"""Python side of the live lines: one run in detail or several runs overlaid, drawn from the events route."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import explanations, measures, resources, routes, theme, tokens
from dashboard.components import bundle
from dashboard.tables import method_title, variant
from dashboard.wording import run_title
from isoviz import methods
from isoviz.runs.rows import RunRow

_FIGURES = ("loss", "metric", "isotropy", "spectrum")

_mount = st.components.v2.component(
    "isoviz_live_lines",
    html=bundle("live_lines.html"),
    css=bundle("live_lines.css"),
    js=bundle("fold.js", "feed.js", "look.js", "plotly_script.js", "saved_picture.js", "figures.js", "live_lines.js"),
    isolate_styles=False,  # plotly.js writes its styles into the document's head
)


def live_lines(runs: Sequence[RunRow], *, key: str) -> None:
    """Mount the live view of these runs; it keeps itself up to date without page reruns.

    Args:
        runs: one run (every loss term, all metrics, ghosts of earlier epochs) or several (one line per run and figure).
        key: identity of the mounted element; the same key keeps it in place while other runs are chosen.
    """
    seeds = {row.config.seed for row in runs}
    described = [
        {
            "id": row.id,
            "label": run_title(row),
            "short": ", ".join(
                part
                for part in (
                    method_title(row.config.method),
                    variant(row.config.method, row.config.params),
                    f"seed {row.config.seed}" if len(seeds) > 1 else "",
                )
                if part
            ),
            "colour": theme.method_colour(row.config.method),
            "epochs": row.config.epochs
            + bool(methods.get(row.config.method).frozen_stage),  # a second stage counts as one
        }
        for row in runs
    ]
    _mount(
        key=key,
        data={
            "runs": described,
            "events": f"{routes.PREFIX}/events",
            "token": tokens.issue(resources.store().folder, [row.id for row in runs]),
            "plotly": routes.plotly_path(),
            "metrics": measures.live(),
            "help": {name: explanations.get(name).plain() for name in _FIGURES},
            # Makes the component ask again when a run that had ended was resumed.
            "seen": [row.status for row in runs],
        },
    )
