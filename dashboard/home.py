"""Sections of the home page: a small playground, from text to label, three starting points, running and latest runs."""

from __future__ import annotations

import streamlit as st

from dashboard import examples, explanations, measures, menu, resources, theme, wording
from dashboard.components.playground.mounted import playground
from dashboard.explanations import Explanation
from dashboard.tables import decimals, primary_metric
from isoviz.events import ENDINGS
from isoviz.runs.examples import METHODS, Examples
from isoviz.runs.rows import RunProgress, RunRow

ISOSCORE = Explanation(
    title="IsoScore",
    reading=(
        "λ₁ … λ_d are the variances along the cloud's principal directions. PR is the effective number of directions: "
        "d if all are used equally, 1 if the points lie on a line. IsoScore puts that on a scale from 0 to 1."
    ),
    formula=(
        r"\mathrm{PR} = \frac{\bigl(\sum_i \lambda_i\bigr)^2}{\sum_i \lambda_i^2}, \qquad "
        r"\text{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}"
    ),
    formula_text="PR = (Σλᵢ)²/Σλᵢ²,  IsoScore = (PR − 1)/(d − 1)",
    paper="Rudman et al. 2022, IsoScore: Measuring the Uniformity of Embedding Space Utilization.",
)

CLOUD = {
    "d": 16,
    "hidden": [
        *(
            "presets",
            "plots",
            "transforms",
            "n",
            "spectrum",
            "decay",
            "rank",
            "floor",
            "rogue",
            "block",
            "rho",
            "rotation",
        ),
        *("tails", "duplicates", "scale", "zeta"),
    ],
}
"""Initial state of the playground on this page: few controls, each with a visible effect."""

STRIP = (
    ("Text", ":material/notes:", "“A warm and funny film.” One row of your task."),
    ("Layers", ":material/layers:", "Each layer of the encoder turns every token into a vector of d numbers."),
    (
        "One vector",
        ":material/scatter_plot:",
        "[CLS], or the mean over the tokens: the **classifier input**. n rows give a cloud of n points in d dimensions.",
    ),
    ("Classifier", ":material/rule:", "Reads this vector and predicts the label."),
)
MEASURED = "One vector"

OWN_DATA = "Try it on my data"
SHOWN = 8
TICK = 3.0
"""Seconds between refreshes of the list while runs are running."""


def strip() -> None:
    """From a text to a label in four steps, highlighting the vector that IsoViz measures."""
    for column, (title, icon, text) in zip(st.columns(len(STRIP)), STRIP, strict=True):
        with column.container(border=True, height="stretch", gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{icon} {title}**", width="content")
                if title == MEASURED:
                    st.badge("measured here", color="blue")
            st.caption(text)


def cloud() -> None:
    """A small playground with an explanation of its numbers."""
    playground(key="home_playground", state=CLOUD)
    with st.container(horizontal=True, vertical_alignment="center"):
        explanations.show(ISOSCORE, label="What IsoScore measures")
        st.page_link(menu.PLAYGROUND, label="All controls and plots", icon=":material/bubble_chart:")


def ways_in() -> None:
    """Three questions, each with links to the pages that answer it."""
    entry_points = (
        (
            "What is isotropy?",
            "Eight short lessons. You guess, the cloud moves, and you see how far off you were.",
            [
                (menu.LESSONS, "Start the lessons", ":material/school:"),
                (menu.METHODS, "Methods and measures", ":material/functions:"),
            ],
        ),
        (
            "Would whitening help me?",
            "Whiten your own texts or vectors and see what search, similarity and labels lose or gain, with intervals.",
            [
                (menu.WHATIF, OWN_DATA, ":material/upload:"),
                (menu.EXPLORE, "Explore an encoder", ":material/layers:"),
                (menu.WHATIF, "Transform a run", ":material/tune:"),
            ],
        ),
        (
            "Which method?",
            "Fine-tune with several methods and seeds, and test whether they differ. More isotropic need not mean more accurate.",
            [
                (menu.TRAIN, "Set up runs", ":material/model_training:"),
                (menu.PAPERS, "What the papers found", ":material/menu_book:"),
            ],
        ),
    )
    for column, (question, text, links) in zip(st.columns(len(entry_points)), entry_points, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{question}**")
            st.markdown(text)
            st.space("stretch")
            for page, label, icon in links:
                own = menu.WHATIF_OWN if label == OWN_DATA else None
                st.page_link(page, label=label, icon=icon, query_params=own)


def runs() -> None:
    """Running, waiting and latest runs, refreshed while runs are running. Empty for an empty store."""
    store = resources.library()
    if not store.list(limit=1):
        _examples(store.examples)
        return
    st.subheader("Runs", anchor=False)
    counts = store.counts()
    busy = counts["running"] + counts["queued"] > 0
    st.fragment(_runs, run_every=TICK if busy else None)(busy)


def _examples(shipped: Examples | None) -> None:
    """Recorded runs, shown while there are no others."""
    if shipped is None:
        st.caption(":material/arrow_upward: No run yet. Start with the 60-second demo.")
        return
    st.subheader("Example runs", anchor=False)
    st.caption(f"{wording.plain(examples.where_recorded())} Your own runs will replace them.")
    rows = [row for row in shipped.list(group=METHODS, order="oldest") if row.config.seed == 0]
    first = [row for row in rows if row.config.task == rows[0].config.task]
    with st.container(border=True, gap="xsmall"):
        for row in first[:SHOWN]:
            _line(row)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(menu.RESULTS, label="Results", icon=":material/table_chart:")
        st.page_link(menu.TRADEOFFS, label="Trade-offs", icon=":material/scatter_plot:")
        st.page_link(menu.WHATIF, label="What-if", icon=":material/tune:")
        replay = {"run": first[-1].id, "replay": "1"}
        st.page_link(menu.LIVE, label="Replay a training run", icon=":material/history:", query_params=replay)
        examples.hide_button("home_hide_examples")


def _runs(was_busy: bool) -> None:
    store = resources.library()
    counts = store.counts()
    if was_busy and not counts["running"] + counts["queued"]:
        st.rerun()
    st.caption(" · ".join(f"{count} {status}" for status, count in counts.items() if count))
    running = store.list(status="running", limit=SHOWN // 2)
    waiting = store.list(status="queued", order="queue", limit=2)
    ended = store.list(status=sorted(ENDINGS), limit=SHOWN - len(running) - len(waiting))
    with st.container(border=True, gap="xsmall"):
        for row in [*running, *waiting, *ended]:
            _line(row)
    with st.container(horizontal=True):
        st.page_link(menu.RESULTS, label="All results", icon=":material/table_chart:")
        st.page_link(menu.TRADEOFFS, label="Trade-offs", icon=":material/scatter_plot:")


def _line(row: RunRow) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = wording.plain(wording.run_title(row))
        if row.status == "running":
            st.page_link(menu.LIVE, label=label, query_params={"run": row.id}, help="Watch it live.", width="stretch")
        else:
            st.page_link(
                menu.RUN, label=label, query_params={"id": row.id}, help="Open the run's page.", width="stretch"
            )
        # on a phone these two wrap below the link
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width=330):
            st.markdown(theme.status_badge(row.status), width=100)
            st.caption(one_line(row), width="stretch", text_alignment="right")


def one_line(row: RunRow) -> str:
    """The most important fact about a run, for a list."""
    if row.status == "queued":
        return wording.place(row)
    if row.status == "running":
        progress = row.progress or RunProgress()
        if progress.total_steps:
            return f"step {progress.step} of {progress.total_steps}"
        return wording.plain(progress.phase or "starting")
    if row.result:
        values = row.result.metrics
        metric = primary_metric(row.config.task, values)
        isotropy = measures.comparing()
        number = decimals(row.result.isotropy.number(isotropy.slug), isotropy.decimals)
        collapsed = f", collapsed: {row.collapsed}" if row.collapsed else ""
        return wording.plain(f"{metric} {decimals(values.get(metric))}, {isotropy.heading} {number}{collapsed}")
    return wording.plain(str((row.error or {}).get("message", "")))
