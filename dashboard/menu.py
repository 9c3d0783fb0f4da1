"""The pages of the app and the links between them."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard import resources

TICK = 3.0
"""Seconds between counts of queued and running runs."""
_PAGES = Path(__file__).resolve().parent.parent / "pages"

HOME, PLAYGROUND, LESSONS, METHODS, EXPLORE, WHATIF, TRAIN, LIVE, EXPERIMENTS, RESULTS, TRADEOFFS, PAPERS, RUN = (
    str(_PAGES / f"{name}.py")
    for name in (
        *("home", "playground", "lessons", "methods", "explore", "whatif", "train", "live"),
        *("experiments", "results", "tradeoffs", "papers", "run"),
    )
)
"""Argument type of `st.page_link` and `st.switch_page`."""


def pages() -> list[st.Page]:
    """All pages; `app.css` puts headings between them. The page of one run opens by links and by its address `/run?id=…`."""
    home = st.Page(
        HOME,
        title="Home",
        icon=":material/home:",
        default=True,
        help="What isotropy is, presets to start from, and your latest runs.",
    )
    learn = [
        st.Page(
            PLAYGROUND,
            title="Playground",
            icon=":material/bubble_chart:",
            help="Shape a cloud of points with sliders and compare isotropy measures. No model needed.",
        ),
        st.Page(
            LESSONS,
            title="Lessons",
            icon=":material/school:",
            help="Eight short lessons: guess first, then watch what isotropy measures do.",
        ),
        st.Page(
            METHODS,
            title="Methods",
            icon=":material/functions:",
            help="Every method, measure and transform: equation, paper, parameters, cost, traps.",
        ),
    ]
    analyse = [
        st.Page(
            EXPLORE,
            title="Explore",
            icon=":material/layers:",
            help="An encoder on a task, layer by layer: all measures, the spectrum and the dimensions.",
        ),
        st.Page(
            WHATIF,
            title="What-if",
            icon=":material/tune:",
            help="Transform a finished run's embeddings and see how isotropy and the head's performance change.",
        ),
    ]
    experiment = [
        st.Page(
            TRAIN,
            title="Train",
            icon=":material/model_training:",
            help="Choose models, tasks, methods, parameters and seeds, and launch the runs.",
        ),
        st.Page(
            LIVE,
            title="Live",
            icon=":material/monitoring:",
            help="The queue, and running runs with live curves.",
        ),
        st.Page(
            EXPERIMENTS,
            title="Experiments",
            icon=":material/science:",
            help="Runs launched together: tables, trade-off, report, and more seeds in one click.",
        ),
        st.Page(
            RESULTS,
            title="Results",
            icon=":material/table_chart:",
            help="Model × task × method tables with every seed visible.",
        ),
        st.Page(
            TRADEOFFS,
            title="Trade-offs",
            icon=":material/scatter_plot:",
            help="Isotropy against task performance, one point per run.",
        ),
        st.Page(
            PAPERS,
            title="Papers",
            icon=":material/menu_book:",
            help="The tables and figures of four papers: published values, values measured here, and whether the claims hold.",
        ),
        st.Page(
            RUN,
            title="Run",
            icon=":material/article:",
            visibility="hidden",
            help="One run: configuration, curves, provenance, log.",
        ),
    ]
    return [home, *learn, *analyse, *experiment]


def activity(page: st.Page) -> None:
    """Link to Live with the numbers of queued and running runs, in the sidebar of all other pages. Refreshes while there are any."""
    if page.url_path == "live":
        return
    with st.sidebar:
        st.fragment(_activity, run_every=TICK if _under_way() else None)()


def _under_way() -> list[str]:
    counts = resources.store().counts()
    return [f"{counts[status]} {status}" for status in ("running", "queued") if counts[status]]


def _activity() -> None:
    if parts := _under_way():
        st.page_link(LIVE, label=" · ".join(parts), icon=":material/play_circle:", help="Watch the runs.")


WHATIF_OWN = {"whatif_from": "Vectors or texts", "whatif_set": "Your own vectors or texts"}
"""Query parameters that open What-if with the form for the user's data."""


def whatif_own(key: str, model: str = "") -> dict[str, str]:
    """Query parameters that open What-if on stored vectors, or on stored texts with a model."""
    return {**WHATIF_OWN, "whatif_either": key, **({"whatif_model": model} if model else {})}


def explore_own(key: str, kind: str, model: str = "") -> dict[str, str]:
    """Query parameters that open Explore on a stored set.

    Args:
        kind: `texts` or `vectors`.
        model: the encoder of texts; may be empty.
    """
    return {"explore_at": f"My {kind}", f"explore_{kind}": key, **({"explore_model": model} if model else {})}
