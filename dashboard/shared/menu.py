"""The pages of the app and the links between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import streamlit as st

from dashboard.shared import resources

TICK = 3.0
"""Seconds between counts of queued and running runs."""
_PAGES = Path(__file__).resolve().parents[2] / "pages"


def _page(name: str) -> str:
    return str(_PAGES / f"{name}.py")


HOME, PLAYGROUND, LESSONS, METHODS = map(_page, ("home", "playground", "lessons", "methods"))
EXPLORE, WHATIF, RULER, COMPARE = map(_page, ("explore", "whatif", "ruler", "compare"))
TRAIN, LIVE, EXPERIMENTS, RESULTS = map(_page, ("train", "live", "experiments", "results"))
TRADEOFFS, PAPERS, RUN = map(_page, ("tradeoffs", "papers", "run"))
"""Argument type of `st.page_link` and `st.switch_page`."""


_MENU: Final = {
    HOME: ("Home", "home", "What isotropy is, presets to start from, and your latest runs."),
    PLAYGROUND: (
        "Playground",
        "bubble_chart",
        "Shape a cloud of points with sliders and compare isotropy measures. No model needed.",
    ),
    LESSONS: ("Lessons", "school", "Eleven short lessons: guess first, then watch what isotropy measures do."),
    METHODS: ("Methods", "functions", "Every method, measure and transform: equation, paper, parameters, cost, traps."),
    EXPLORE: (
        "Explore",
        "layers",
        "An encoder on a task, layer by layer: all measures, the spectrum and the dimensions.",
    ),
    WHATIF: (
        "What-if",
        "tune",
        "Transform a finished run's embeddings and see how isotropy and the head's performance change.",
    ),
    RULER: (
        "Ruler",
        "straighten",
        "What a cosine means for an encoder: noise floor, P(related | cosine), and a threshold with its precision.",
    ),
    COMPARE: (
        "Compare",
        "balance",
        "Which encoder ranks higher on your questions: verdicts with intervals, and the questions that get worse.",
    ),
    TRAIN: ("Train", "model_training", "Choose models, tasks, methods, parameters and seeds, and launch the runs."),
    LIVE: ("Live", "monitoring", "The queue, and running runs with live curves."),
    EXPERIMENTS: (
        "Experiments",
        "science",
        "Runs launched together: tables, trade-off, report, and more seeds in one click.",
    ),
    RESULTS: ("Results", "table_chart", "Model × task × method tables with every seed visible."),
    TRADEOFFS: ("Trade-offs", "scatter_plot", "Isotropy against task performance, one point per run."),
    PAPERS: (
        "Papers",
        "menu_book",
        "The tables and figures of four papers: published values, values measured here, and whether the claims hold.",
    ),
    RUN: ("Run", "article", "One run: configuration, curves, provenance, log."),
}
"""Page → title, icon, what it is for, in the order of the menu."""


_VIEWS: Final = ((RESULTS, EXPERIMENTS, TRADEOFFS), (LESSONS, METHODS))
"""Pages that the menu offers as one: the first, with links to the others at its top."""
_BEHIND: Final = {RUN, *(page for pages in _VIEWS for page in pages[1:])}


def views(page: str) -> None:
    """Links between this page and those that share its entry of the menu."""
    with st.container(horizontal=True, gap="small", key="menu_views"):
        for other in next(pages for pages in _VIEWS if page in pages):
            title, icon, purpose = _MENU[other]
            st.page_link(other, label=title, icon=f":material/{icon}:", help=purpose)


def pages() -> list[st.Page]:
    """All pages; `app.css` puts headings between them. Those that are not in the menu open by links and by their addresses."""
    return [
        st.Page(
            path,
            title=title,
            icon=f":material/{icon}:",
            help=purpose,
            default=path == HOME,
            visibility="hidden" if path in _BEHIND else "visible",
        )
        for path, (title, icon, purpose) in _MENU.items()
    ] + [st.Page(_moved, title="Atlas", url_path="atlas", visibility="hidden")]


def _moved() -> None:
    """The old address of recorded encoders."""
    st.switch_page(COMPARE)


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


OWN_SET = "Your own vectors or texts"
"""Option of What-if and Ruler for the user's data."""
WHATIF_OWN = {"whatif_from": "Vectors or texts", "whatif_set": OWN_SET}
"""Query parameters that open What-if with the form for the user's data."""


def of_own_texts(before: str, encoder: str) -> list[tuple[str, str, str, Any]]:
    """Pages that encode one's texts: their labels, icons, and the query parameters that choose an encoder, on Compare beside another."""
    return [
        (RULER, "Ruler", "straighten", {"ruler_set": OWN_SET, "ruler_model": encoder}),
        (WHATIF, "What-if", "tune", {**WHATIF_OWN, "whatif_model": encoder}),
        (COMPARE, "Compare", "balance", {"compare_models": [before, encoder]}),
    ]


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
